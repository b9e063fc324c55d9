package conformance

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reconcile does what the controllers of the twin and of core do, except for its defects.
func (w *twin) reconcile(ctx context.Context) {
	for _, cluster := range w.list(ctx, clusterKind, "") {
		namespace := cluster.GetNamespace()
		controlPlane := w.stored(ctx, twinControlPlane, namespace, namespace)
		switch {
		case cluster.GetDeletionTimestamp() != nil && at(&cluster, "spec", "paused") != true:
			w.remove(ctx, namespace)
		case controlPlane == nil && w.defects["farewell"]:
			for _, registration := range w.list(ctx, twinRegistration, namespace) {
				w.drop(ctx, &registration)
			}
		case controlPlane != nil:
			for title, first := range w.objects {
				if first.GetNamespace() == namespace {
					w.reconcileObject(ctx, title, first, &cluster, controlPlane)
				}
			}
			w.keepSecrets(ctx, namespace)
			w.propagateVersion(ctx, &cluster)
		}
	}
	w.reportDependencies(ctx)
}

// reconcileObject reconciles one object.
func (w *twin) reconcileObject(ctx context.Context, title string, first, cluster, controlPlane *object) {
	now := w.stored(ctx, first.GroupVersionKind(), first.GetNamespace(), first.GetName())
	if now == nil {
		return
	}
	before := now.DeepCopy()
	_, paused := now.GetAnnotations()[clusterv1.PausedAnnotation]
	paused = paused || at(cluster, "spec", "paused") == true
	w.everPaused[now.GetNamespace()] = w.everPaused[now.GetNamespace()] || paused
	idle := paused && !w.defects["pause"] || w.everPaused[now.GetNamespace()] && w.defects["awakening"]
	if now.GetKind() == "TwinControlPlane" && !idle {
		w.createDuplicates(ctx, now)
	}
	w.restore(now, first, idle, paused)
	if now.GetKind() == "Machine" && !idle {
		w.propagate(now, controlPlane)
		mirror(now, w.stored(ctx, twinConfig, now.GetNamespace(), text(now, "spec", "bootstrap", "configRef", "name")))
	}
	if now.GetKind() == "TwinMachine" || now.GetKind() == "TwinConfig" || now.GetKind() == "Machine" {
		if !idle && !w.defects["metadata"] {
			copyMetadata(now, controlPlane)
		}
	}
	w.save(ctx, title, before, now)
	if w.defects["in place"] && now.GetKind() == "Machine" && at(now, "spec", "deletion") != nil {
		w.drop(ctx, now) // core replaces it
		return
	}
	if !idle || w.defects["patience"] {
		w.finishDeletion(ctx, now, controlPlane)
	}
}

// finishDeletion finishes deletions. A deleted control plane deletes its Machines. A Machine that is deleted alone, or is
// unhealthy, is replaced.
func (w *twin) finishDeletion(ctx context.Context, o, controlPlane *object) {
	deleted := o.GetDeletionTimestamp() != nil
	unhealthy := condition(o, clusterv1.MachineOwnerRemediatedCondition).Status == metav1.ConditionFalse && !w.defects["remediation"]
	switch o.GetKind() {
	case "MachineDeployment":
		if machines := w.list(ctx, machineKind, o.GetNamespace()); w.rollsOut(o) {
			w.drop(ctx, &machines[len(machines)-1]) // core replaces it
		}
	case "Machine":
		if unhealthy {
			w.change(ctx, controlPlane, func(now *object) {
				setCondition(now, clusterv1.RemediatingCondition, "True", "Remediating", o.GetName())
			})
		}
		if deleted || unhealthy {
			w.replace(ctx, o)
		}
		if unhealthy {
			w.change(ctx, controlPlane, func(now *object) { setCondition(now, clusterv1.RemediatingCondition, "False", "NotRemediating", "") })
		}
	case "TwinControlPlane":
		if deleted {
			for _, m := range w.list(ctx, machineKind, o.GetNamespace()) {
				w.drop(ctx, &m)
			}
			w.drop(ctx, o)
		}
	case "TwinConfig":
		if deleted {
			w.drop(ctx, o)
		}
	}
}

// replace replaces a Machine once no other hook blocks its deletion: the twin's hook is the last.
func (w *twin) replace(ctx context.Context, deleted *object) {
	if hooks := deleted.GetAnnotations(); slices.ContainsFunc(slices.Collect(maps.Keys(hooks)), func(name string) bool {
		return strings.HasPrefix(name, clusterv1.PreTerminateDeleteHookAnnotationPrefix) && name != twinHook
	}) {
		w.change(ctx, deleted, func(now *object) {
			setCondition(now, clusterv1.MachineDeletingCondition, "True", clusterv1.MachineDeletingWaitingForPreTerminateHookReason, "")
			if w.defects["hooks"] {
				delete(hooks, twinHook)
				now.SetAnnotations(hooks)
			}
		})
		return
	}
	next := w.objects[title(deleted)].DeepCopy()
	delete(w.objects, title(deleted))
	w.drop(ctx, deleted)
	next.SetName(deleted.GetName() + "-next")
	next.SetUID(deleted.GetUID() + "-next")
	w.objects[title(next)] = next
	if err := w.store.Create(ctx, next.DeepCopy()); err != nil {
		w.t.Error(err)
	}
	w.record(next)
}

// drop removes an object with all its finalizers.
func (w *twin) drop(ctx context.Context, o *object) {
	if now := w.stored(ctx, o.GroupVersionKind(), o.GetNamespace(), o.GetName()); now != nil {
		w.writes.add(o.GetNamespace(), o.GetKind())
		now.SetFinalizers(nil)
		if err := w.store.Update(ctx, now); err != nil {
			w.t.Error(err)
		}
		if err := client.IgnoreNotFound(w.store.Delete(ctx, now)); err != nil {
			w.t.Error(err)
		}
	}
}

// mirror copies the condition of a config to its Machine, as core does.
func mirror(m, config *object) {
	if config == nil {
		return
	}
	if ready := condition(config, clusterv1.ReadyCondition); ready.Status != "" {
		setCondition(m, clusterv1.MachineBootstrapConfigReadyCondition, string(ready.Status), ready.Reason, ready.Message)
	}
}

// propagateVersion propagates the version of the topology to a control plane, as core does. Its Machines are outdated
// then.
func (w *twin) propagateVersion(ctx context.Context, cluster *object) {
	version := text(cluster, "spec", "topology", "version")
	controlPlane := w.stored(ctx, twinControlPlane, cluster.GetNamespace(), cluster.GetName())
	if controlPlane == nil || text(controlPlane, "spec", "version") == version {
		return
	}
	w.change(ctx, controlPlane, func(now *object) {
		now.Object["spec"].(map[string]any)["version"] = version
		setCondition(now, clusterv1.MachinesUpToDateCondition, "False", "A", "version "+version+" is wanted")
	})
}

// Upgrade makes the cluster run the requested version, first on one Machine. A twin that replaces Machines for
// an upgrade deletes one.
func (c playedCluster) Upgrade(ctx context.Context, version string) error {
	controlPlane := c.stored(ctx, twinControlPlane, c.key.Namespace, c.key.Name)
	former, machines := text(controlPlane, "status", "version"), at(controlPlane, "status", "replicas").(int64)
	c.change(ctx, controlPlane, func(now *object) {
		status := now.Object["status"].(map[string]any)
		status["versions"] = []any{
			map[string]any{"version": former, "replicas": machines - 1},
			map[string]any{"version": version, "replicas": int64(1)},
		}
		if c.defects["versions"] {
			status["version"] = version
		}
	})
	c.change(ctx, controlPlane, func(now *object) {
		status := now.Object["status"].(map[string]any)
		status["version"], status["versions"] = version, []any{map[string]any{"version": version, "replicas": machines}}
		setStatus(now, clusterv1.MachinesUpToDateCondition, true)
	})
	if gone := c.stored(ctx, machineKind, c.key.Namespace, c.key.Name+"-0"); gone != nil && c.defects["in place"] {
		c.drop(ctx, gone)
	}
	return nil
}

// Disturb makes the config of a Machine report a problem of its host.
func (c playedCluster) Disturb(ctx context.Context, machine string) (func(context.Context) error, error) {
	if c.limit != nil {
		return nil, c.limit
	}
	m := c.stored(ctx, machineKind, c.key.Namespace, machine)
	config := c.stored(ctx, twinConfig, c.key.Namespace, text(m, "spec", "bootstrap", "configRef", "name"))
	report := func(ctx context.Context, status, reason, message string) {
		c.change(ctx, config, func(now *object) { setCondition(now, clusterv1.ReadyCondition, status, reason, message) })
		c.reconcile(ctx)
	}
	if !c.defects["constancy"] {
		report(ctx, "False", "HostAway", "the host does not answer")
	}
	return func(ctx context.Context) error {
		report(ctx, "True", "A", "")
		return nil
	}, nil
}

// report reports the dependencies of objects that the test created. With several namespaces, only objects with the
// label of the filter in the one namespace are reported.
func (w *twin) reportDependencies(ctx context.Context) {
	for _, k := range []kind{twinConfig, twinControlPlane} {
		for _, o := range w.list(ctx, k, "") {
			filtered := o.GetNamespace() == moveNamespace && o.GetLabels()[clusterv1.WatchLabel] != ""
			if w.objects[title(&o)] != nil || o.GetNamespace() != "waiting" && !filtered && !w.defects["filter"] {
				continue
			}
			reason := "WaitingForMachine"
			if w.stored(ctx, machineKind, o.GetNamespace(), o.GetName()) != nil && !w.defects["reasons"] {
				reason = "WaitingForInfrastructure"
			}
			w.change(ctx, &o, func(now *object) {
				now.Object["status"] = map[string]any{}
				for _, name := range []string{clusterv1.ReadyCondition, clusterv1.AvailableCondition} {
					setCondition(now, name, "False", reason, "waiting for the TwinCluster")
				}
			})
		}
	}
}

// remove deletes a cluster, except for the objects of its hosts.
func (w *twin) remove(ctx context.Context, namespace string) {
	half := len(w.list(ctx, machineKind, namespace)) == 0
	for _, k := range w.kinds {
		for _, o := range w.list(ctx, k, namespace) {
			controlPlane := o.GetKind() == "TwinControlPlane"
			left := w.defects["cleanliness"] && (o.GetKind() == "Secret" || controlPlane) || w.defects["independence"] && half && controlPlane
			if left || w.ofHosts(ctx, &o) {
				continue
			}
			w.drop(ctx, &o)
		}
	}
}

// list lists the stored objects of a kind; without a namespace those of all namespaces.
func (w *twin) list(ctx context.Context, k kind, namespace string) []object {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k)
	if err := w.store.List(ctx, list, client.InNamespace(namespace)); err != nil {
		w.t.Error(err)
	}
	return list.Items
}

func (w *twin) stored(ctx context.Context, k kind, namespace, name string) *object {
	o := &object{}
	o.SetGroupVersionKind(k)
	if w.store.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, o) != nil {
		return nil
	}
	return o
}

// change changes a stored object.
func (w *twin) change(ctx context.Context, o *object, edit func(now *object)) {
	now := w.stored(ctx, o.GroupVersionKind(), o.GetNamespace(), o.GetName())
	before := now.DeepCopy()
	edit(now)
	w.save(ctx, title(now), before, now)
}

// record records the new state of an object of the initial clusters. The other clusters are watched.
func (w *twin) record(o *object) {
	for _, f := range []*fixture{w.fixtures.full, w.fixtures.small} {
		if f.namespace == o.GetNamespace() {
			last := f.seen.entries[len(f.seen.entries)-1]
			f.seen.entries = append(f.seen.entries, entry{object: o.DeepCopy(), version: last.version + 1})
		}
	}
}

// save writes an object and its status if they changed.
func (w *twin) save(ctx context.Context, title string, before, now *object) {
	if fmt.Sprint(before.Object) == fmt.Sprint(now.Object) {
		return
	}
	status := now.DeepCopy()
	if err := w.store.Update(ctx, now); err != nil {
		w.t.Errorf("%s: %v", title, err)
	}
	if status.Object["status"] != nil {
		status.SetResourceVersion(now.GetResourceVersion())
		if err := w.store.Status().Update(ctx, status); err != nil {
			w.t.Errorf("%s: %v", title, err)
		}
	}
	w.record(status)
}

// restore restores the fields of an object that were removed, unless it is paused.
func (w *twin) restore(now, first *object, idle, paused bool) {
	switch now.GetKind() {
	case "TwinConfig", "TwinControlPlane", "Machine", "Secret":
	default:
		return
	}
	if !idle {
		if !w.defects["owners"] {
			if !(now.GetKind() == "Secret" && strings.HasSuffix(now.GetName(), "-kubeconfig")) {
				now.SetOwnerReferences(first.GetOwnerReferences())
			}
			now.SetFinalizers(first.GetFinalizers())
		}
		if now.Object["status"] == nil && first.Object["status"] != nil && !w.defects["status"] {
			now.Object["status"] = first.DeepCopy().Object["status"]
		}
	}
	if strings.HasPrefix(now.GetKind(), "Twin") {
		setStatus(now, clusterv1.PausedCondition, paused)
	}
}

// setStatus sets a condition to True or False.
func setStatus(o *object, name string, is bool) {
	list, _ := at(o, "status", "conditions").([]any)
	for _, c := range list {
		if c := c.(map[string]any); c["type"] == name {
			c["status"] = map[bool]string{true: "True", false: "False"}[is]
		}
	}
}

// setCondition sets a condition in the status of an object.
func setCondition(o *object, name, status, reason, message string) {
	updated := map[string]any{
		"type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2031-01-01T00:00:00Z",
	}
	list, _ := at(o, "status", "conditions").([]any)
	if i := slices.IndexFunc(list, func(c any) bool { return c.(map[string]any)["type"] == name }); i >= 0 {
		list[i] = updated
		return
	}
	o.Object["status"].(map[string]any)["conditions"] = append(list, updated)
}

// propagate copies the settings of a control plane to one of its Machines.
func (w *twin) propagate(m, controlPlane *object) {
	if _, master := m.GetLabels()[clusterv1.MachineControlPlaneLabel]; !master {
		return
	}
	spec := m.Object["spec"].(map[string]any)
	for _, name := range []string{"taints", "deletion", "readinessGates", "minReadySeconds"} {
		value := at(controlPlane, "spec", "machineTemplate", "spec", name)
		if w.defects[name] {
			continue
		}
		if value == nil {
			value = map[string]any{"minReadySeconds": int64(0)}[name]
		}
		if delete(spec, name); value != nil {
			spec[name] = runtime.DeepCopyJSONValue(value)
		}
	}
	gates, _ := spec["readinessGates"].([]any)
	ready := true
	for _, gate := range gates {
		ready = ready && condition(m, gate.(map[string]any)["conditionType"].(string)).Status == metav1.ConditionTrue
	}
	setStatus(m, clusterv1.MachineReadyCondition, ready)
}

// copyMetadata copies labels and annotations of the control plane's machineTemplate to an object, and removes
// other ones of the suite.
func copyMetadata(o, controlPlane *object) {
	wanted := func(name string, has map[string]string) map[string]string {
		maps.DeleteFunc(has, func(key, _ string) bool { return strings.HasPrefix(key, "conformance") })
		values, _ := at(controlPlane, "spec", "machineTemplate", "metadata", name).(map[string]any)
		for key, value := range values {
			if has == nil {
				has = map[string]string{}
			}
			has[key] = value.(string)
		}
		return has
	}
	o.SetLabels(wanted("labels", o.GetLabels()))
	o.SetAnnotations(wanted("annotations", o.GetAnnotations()))
}

// keepSecrets restores the kubeconfig that the twin owns. A broken twin also changes bootstrap data that a host
// has already.
func (w *twin) keepSecrets(ctx context.Context, namespace string) {
	secret := &corev1.Secret{}
	if w.store.Get(ctx, types.NamespacedName{Namespace: namespace, Name: namespace + "-kubeconfig"}, secret) != nil {
		return
	}
	wanted := kubeconfigTo(w.api.URL, w.token)
	if string(secret.Data["value"]) != string(wanted) && (len(secret.OwnerReferences) > 0 || w.defects["respect"]) {
		secret.Data["value"] = wanted
		if err := w.store.Update(ctx, secret); err != nil {
			w.t.Error(err)
		}
	}
	configs := &unstructured.UnstructuredList{}
	configs.SetGroupVersionKind(twinConfig)
	if err := w.store.List(ctx, configs, client.InNamespace(namespace)); err != nil {
		w.t.Error(err)
	}
	for _, config := range configs.Items {
		if w.defects["final data"] && at(&config, "spec", "servers") != nil || w.defects["deterministic"] {
			data := &corev1.Secret{}
			if w.store.Get(ctx, client.ObjectKeyFromObject(&config), data) == nil {
				data.Data["value"] = append(data.Data["value"], 'x')
				_ = w.store.Update(ctx, data)
			}
		}
	}
}

// playedHub is the hub of a twin.
type playedHub struct{ *twin }

func (playedHub) Config() *rest.Config                  { return nil }
func (playedHub) Kubeconfig() string                    { return "" }
func (playedHub) Stop()                                 {}
func (h playedHub) Panics(context.Context) (int, error) { return len(h.defects), h.limit }

// Writes counts the recorded writes of the controllers.
func (h playedHub) Writes(namespace string, since time.Time) (map[string]int, error) {
	return h.writes.in(namespace, since), h.limit
}

// Crash makes the controllers crash with each write that creates or removes an object in a namespace.
func (h playedHub) Crash(namespace string) func() int {
	h.crashNamespace = namespace
	begun := time.Now()
	return func() int {
		h.crashNamespace = ""
		deaths := 0
		for _, times := range h.writes.in(namespace, begun) {
			deaths += times
		}
		return deaths
	}
}

// writes are the writes of the controllers, which may run concurrently.
type writes struct {
	mu  sync.Mutex
	all []write
}

type write struct {
	namespace, kind string
	at              time.Time
}

func (w *writes) add(namespace, kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, write{namespace, kind, time.Now()})
}

// in counts, by kind, the writes in a namespace since a point in time.
func (w *writes) in(namespace string, since time.Time) map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[string]int{}
	for _, one := range w.all {
		if one.namespace == namespace && one.at.After(since) {
			found[one.kind]++
		}
	}
	return found
}

// writeForever writes a control plane periodically though nothing happens: each time with a change or, with the
// defect "thrift", without one.
func (w *twin) writeForever() {
	for i := 0; ; i++ {
		select {
		case <-w.t.Context().Done():
			return
		case <-time.After(held + held/2):
		}
		if w.defects["rest"] {
			controlPlane := w.stored(w.t.Context(), twinControlPlane, "full", "full")
			controlPlane.SetAnnotations(map[string]string{"inspected": strconv.Itoa(i)})
			if err := w.store.Update(w.t.Context(), controlPlane); err != nil {
				continue
			}
		}
		w.writes.add("full", twinControlPlane.Kind)
	}
}

// Apply creates a cluster. Without hosts it has only the objects that wait.
func (h playedHub) Apply(ctx context.Context, options ClusterOptions) (Cluster, error) {
	first := maps.Clone(h.objects)
	f := h.addCluster(options.Namespace, map[Sample]int{Small: 1, Full: 3}[options.Sample], 0)
	infrastructure := h.of("TwinCluster", options.Namespace, options.Namespace)
	infrastructure.Object["spec"] = map[string]any{}
	applied := []string{"Cluster", "TwinCluster", "TwinControlPlane", "TwinConfigTemplate"}
	for title, o := range h.objects {
		if first[title] == nil && slices.Contains(applied, o.GetKind()) {
			options.Edit(o)
		}
	}
	domains, _ := at(infrastructure, "spec", "failureDomains").([]any)
	for title, o := range h.objects {
		if first[title] != nil {
			continue
		}
		if options.NoHosts {
			delete(h.objects, title) // so that it is not restored
		}
		waits := o.GetKind() == "Cluster" || o.GetKind() == "TwinControlPlane" || o.GetKind() == "Machine" && h.defects["restraint"]
		if options.Without != nil && !waits {
			continue
		}
		if o.GetKind() == "Machine" && len(domains) > 0 {
			if !h.defects["spread"] {
				o.Object["spec"].(map[string]any)["failureDomain"] = domains[0].(map[string]any)["name"]
			}
			domains = domains[1:]
		}
		if err := h.create(ctx, o); err != nil {
			return nil, err
		}
	}
	h.reconcile(ctx)
	return f.Cluster, nil
}

// create creates an object. Controllers that crash then find it after their restart, unless they give each object
// a random name.
func (w *twin) create(ctx context.Context, o *object) error {
	w.writes.add(o.GetNamespace(), o.GetKind())
	if err := w.store.Create(ctx, o.DeepCopy()); err != nil {
		return err
	}
	if !w.defects["memory"] || w.crashNamespace != o.GetNamespace() || o.GetKind() != "Machine" {
		return nil
	}
	again := o.DeepCopy()
	again.SetName(o.GetName() + "-again")
	again.SetUID(o.GetUID() + "-again")
	return w.store.Create(ctx, again)
}

// playedCluster is a cluster of a twin.
type playedCluster struct {
	*twin
	key types.NamespacedName
}

func (c playedCluster) Key() types.NamespacedName                        { return c.key }
func (playedCluster) ApplyRest(context.Context) error                    { return nil }
func (playedCluster) Release()                                           {}
func (playedCluster) Forget()                                            {}
func (playedCluster) Available(context.Context) error                    { return nil }
func (c playedCluster) UsersKubeconfig(context.Context) ([]byte, error)  { return c.users, c.limit }
func (c playedCluster) Ignition(context.Context, string) ([]byte, error) { return c.ignition, c.limit }
func (c playedCluster) AgeKubeconfig(ctx context.Context) error          { return c.renew(ctx) }
func (c playedCluster) RotateKubeconfig(ctx context.Context) error       { return c.renew(ctx) }

// renew gives the cluster other credentials.
func (w *twin) renew(ctx context.Context) error {
	if w.limit != nil {
		return w.limit
	}
	if !w.defects["rotation"] {
		w.token = twinToken(w.t, strconv.FormatInt(time.Now().UnixNano(), 10))
	}
	w.reconcile(ctx)
	return nil
}

// workload starts the API server of installed clusters, with the paths that rules request.
func workload(t *testing.T) *httptest.Server {
	t.Helper()
	answers := map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[` +
			`{"name":"nodes","singularName":"node","namespaced":false,"kind":"Node","verbs":["list"]}]}`,
		"/api/v1/nodes": `{"kind":"NodeList","apiVersion":"v1","items":[]}`,
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, found := answers[r.URL.Path]
		if !found || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	return server
}

func kubeconfigTo(url, token string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"a",`+
		`"clusters":[{"name":"a","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],
		"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"users":[{"name":"a","user":{"token":%q}}]}`, url, token)
}

// twinToken returns a token that is valid for a day.
func twinToken(t *testing.T, name string) string {
	t.Helper()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256,
		jwt.RegisteredClaims{ID: name, ExpiresAt: jwt.NewNumericDate(time.Now().Add(24 * time.Hour))}).SignedString([]byte("key"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return signed
}
