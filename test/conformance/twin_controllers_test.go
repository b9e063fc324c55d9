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

// reconcile does what the controllers of the twin and of core do, but for what it lacks.
func (w *twin) reconcile(ctx context.Context) {
	for _, cluster := range w.list(ctx, clusterKind, "") {
		namespace := cluster.GetNamespace()
		controlPlane := w.stored(ctx, twinControlPlane, namespace, namespace)
		switch {
		case cluster.GetDeletionTimestamp() != nil && at(&cluster, "spec", "paused") != true:
			w.remove(ctx, namespace)
		case controlPlane == nil && w.lacks["farewell"]:
			for _, registration := range w.list(ctx, twinRegistration, namespace) {
				w.drop(ctx, &registration)
			}
		case controlPlane != nil:
			for title, first := range w.objects {
				if first.GetNamespace() == namespace {
					w.lookAfter(ctx, title, first, &cluster, controlPlane)
				}
			}
			w.keepSecrets(ctx, namespace)
			w.passOn(ctx, &cluster)
		}
	}
	w.tell(ctx)
}

// lookAfter does what concerns one object.
func (w *twin) lookAfter(ctx context.Context, title string, first, cluster, controlPlane *object) {
	now := w.stored(ctx, first.GroupVersionKind(), first.GetNamespace(), first.GetName())
	if now == nil {
		return
	}
	before := now.DeepCopy()
	_, paused := now.GetAnnotations()[clusterv1.PausedAnnotation]
	paused = paused || at(cluster, "spec", "paused") == true
	w.asleep[now.GetNamespace()] = w.asleep[now.GetNamespace()] || paused
	idle := paused && !w.lacks["pause"] || w.asleep[now.GetNamespace()] && w.lacks["awakening"]
	if now.GetKind() == "TwinControlPlane" && !idle {
		w.lookForMachines(ctx, now)
	}
	w.restore(now, first, idle, paused)
	if now.GetKind() == "Machine" && !idle {
		w.propagate(now, controlPlane)
		mirror(now, w.stored(ctx, twinConfig, now.GetNamespace(), text(now, "spec", "bootstrap", "configRef", "name")))
	}
	if now.GetKind() == "TwinMachine" || now.GetKind() == "TwinConfig" || now.GetKind() == "Machine" {
		if !idle && !w.lacks["metadata"] {
			copyMetadata(now, controlPlane)
		}
	}
	w.save(ctx, title, before, now)
	if w.lacks["in place"] && now.GetKind() == "Machine" && at(now, "spec", "deletion") != nil {
		w.drop(ctx, now) // for another one
		return
	}
	if !idle || w.lacks["patience"] {
		w.letGo(ctx, now, controlPlane)
	}
}

// letGo ends what is deleted: a control plane takes its Machines along, and has another in the place of one that goes alone, or has to.
func (w *twin) letGo(ctx context.Context, o, controlPlane *object) {
	deleted := o.GetDeletionTimestamp() != nil
	unhealthy := condition(o, clusterv1.MachineOwnerRemediatedCondition).Status == metav1.ConditionFalse && !w.lacks["remediation"]
	switch o.GetKind() {
	case "MachineDeployment":
		if machines := w.list(ctx, machineKind, o.GetNamespace()); w.rollsOut(o) {
			w.drop(ctx, &machines[len(machines)-1]) // for another one
		}
	case "Machine":
		if unhealthy {
			w.change(ctx, controlPlane, func(now *object) { say(now, clusterv1.RemediatingCondition, "True", "Remediating", o.GetName()) })
		}
		if deleted || unhealthy {
			w.replace(ctx, o)
		}
		if unhealthy {
			w.change(ctx, controlPlane, func(now *object) { say(now, clusterv1.RemediatingCondition, "False", "NotRemediating", "") })
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

// replace puts another Machine in the place of one, as soon as nobody else holds that: the twin's hook is the last.
func (w *twin) replace(ctx context.Context, gone *object) {
	if hooks := gone.GetAnnotations(); slices.ContainsFunc(slices.Collect(maps.Keys(hooks)), func(name string) bool {
		return strings.HasPrefix(name, clusterv1.PreTerminateDeleteHookAnnotationPrefix) && name != twinHook
	}) {
		w.change(ctx, gone, func(now *object) {
			say(now, clusterv1.MachineDeletingCondition, "True", clusterv1.MachineDeletingWaitingForPreTerminateHookReason, "")
			if w.lacks["hooks"] {
				delete(hooks, twinHook)
				now.SetAnnotations(hooks)
			}
		})
		return
	}
	next := w.objects[title(gone)].DeepCopy()
	delete(w.objects, title(gone))
	w.drop(ctx, gone)
	next.SetName(gone.GetName() + "-next")
	next.SetUID(gone.GetUID() + "-next")
	w.objects[title(next)] = next
	if err := w.store.Create(ctx, next.DeepCopy()); err != nil {
		w.t.Error(err)
	}
	w.see(next)
}

// drop removes an object, whoever holds it.
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

// mirror has a Machine say of its config what that says, as core does.
func mirror(m, config *object) {
	if config == nil {
		return
	}
	if ready := condition(config, clusterv1.ReadyCondition); ready.Status != "" {
		say(m, clusterv1.MachineBootstrapConfigReadyCondition, string(ready.Status), ready.Reason, ready.Message)
	}
}

// passOn gives a control plane the version of the topology, as core does: its Machines are not of that version any more.
func (w *twin) passOn(ctx context.Context, cluster *object) {
	version := text(cluster, "spec", "topology", "version")
	controlPlane := w.stored(ctx, twinControlPlane, cluster.GetNamespace(), cluster.GetName())
	if controlPlane == nil || text(controlPlane, "spec", "version") == version {
		return
	}
	w.change(ctx, controlPlane, func(now *object) {
		now.Object["spec"].(map[string]any)["version"] = version
		say(now, clusterv1.MachinesUpToDateCondition, "False", "A", "version "+version+" is wanted")
	})
}

// Upgrade lets the cluster run the version that is asked for, first on one Machine. A twin that replaces Machines for
// it has one of another name then.
func (c playedCluster) Upgrade(ctx context.Context, version string) error {
	controlPlane := c.stored(ctx, twinControlPlane, c.key.Namespace, c.key.Name)
	former, machines := text(controlPlane, "status", "version"), at(controlPlane, "status", "replicas").(int64)
	if !c.lacks["versions"] {
		c.change(ctx, controlPlane, func(now *object) {
			now.Object["status"].(map[string]any)["versions"] = []any{
				map[string]any{"version": former, "replicas": machines - 1},
				map[string]any{"version": version, "replicas": int64(1)},
			}
		})
	}
	c.change(ctx, controlPlane, func(now *object) {
		status := now.Object["status"].(map[string]any)
		status["version"], status["versions"] = version, []any{map[string]any{"version": version, "replicas": machines}}
		setStatus(now, clusterv1.MachinesUpToDateCondition, true)
	})
	if gone := c.stored(ctx, machineKind, c.key.Namespace, c.key.Name+"-0"); gone != nil && c.lacks["in place"] {
		c.drop(ctx, gone)
	}
	return nil
}

// Disturb has the config of a Machine tell that something is wrong with its host.
func (c playedCluster) Disturb(ctx context.Context, machine string) (func(context.Context) error, error) {
	m := c.stored(ctx, machineKind, c.key.Namespace, machine)
	config := c.stored(ctx, twinConfig, c.key.Namespace, text(m, "spec", "bootstrap", "configRef", "name"))
	tell := func(ctx context.Context, status, reason, message string) {
		c.change(ctx, config, func(now *object) { say(now, clusterv1.ReadyCondition, status, reason, message) })
		c.reconcile(ctx)
	}
	if !c.lacks["constancy"] {
		tell(ctx, "False", "HostAway", "the host does not answer")
	}
	return func(ctx context.Context) error {
		tell(ctx, "True", "A", "")
		return nil
	}, nil
}

// tell tells, of objects that somebody made, what they wait for: of those with the label of the filter, in the one
// namespace, where there are several.
func (w *twin) tell(ctx context.Context) {
	for _, k := range []kind{twinConfig, twinControlPlane} {
		for _, o := range w.list(ctx, k, "") {
			filtered := o.GetNamespace() == moveNamespace && o.GetLabels()[clusterv1.WatchLabel] != ""
			if w.objects[title(&o)] != nil || o.GetNamespace() != "waiting" && !filtered && !w.lacks["filter"] {
				continue
			}
			reason := "WaitingForMachine"
			if w.stored(ctx, machineKind, o.GetNamespace(), o.GetName()) != nil && !w.lacks["reasons"] {
				reason = "WaitingForInfrastructure"
			}
			w.change(ctx, &o, func(now *object) {
				now.Object["status"] = map[string]any{}
				for _, name := range []string{clusterv1.ReadyCondition, clusterv1.AvailableCondition} {
					say(now, name, "False", reason, "waiting for the TwinCluster")
				}
			})
		}
	}
}

// remove removes a cluster, but for what is of its hosts.
func (w *twin) remove(ctx context.Context, namespace string) {
	half := len(w.list(ctx, machineKind, namespace)) == 0
	for _, k := range w.kinds {
		for _, o := range w.list(ctx, k, namespace) {
			controlPlane := o.GetKind() == "TwinControlPlane"
			left := w.lacks["cleanliness"] && (o.GetKind() == "Secret" || controlPlane) || w.lacks["independence"] && half && controlPlane
			if left || w.ofHosts(ctx, &o) {
				continue
			}
			w.drop(ctx, &o)
		}
	}
}

// list lists what is stored of a kind; without namespace everywhere.
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

// change changes what is stored of an object.
func (w *twin) change(ctx context.Context, o *object, edit func(now *object)) {
	now := w.stored(ctx, o.GroupVersionKind(), o.GetNamespace(), o.GetName())
	before := now.DeepCopy()
	edit(now)
	w.save(ctx, title(now), before, now)
}

// see writes down what became of an object of the clusters that were there at first. The others are watched.
func (w *twin) see(o *object) {
	for _, f := range []*fixture{w.fixtures.full, w.fixtures.small} {
		if f.namespace == o.GetNamespace() {
			last := f.seen.entries[len(f.seen.entries)-1]
			f.seen.entries = append(f.seen.entries, entry{object: o.DeepCopy(), version: last.version + 1})
		}
	}
}

// save writes an object, if it is another one now, with its status.
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
	w.see(status)
}

// restore puts back what somebody took from an object, unless it is paused.
func (w *twin) restore(now, first *object, idle, paused bool) {
	switch now.GetKind() {
	case "TwinConfig", "TwinControlPlane", "Machine", "Secret":
	default:
		return
	}
	if !idle {
		if !w.lacks["owners"] {
			if !(now.GetKind() == "Secret" && strings.HasSuffix(now.GetName(), "-kubeconfig")) {
				now.SetOwnerReferences(first.GetOwnerReferences())
			}
			now.SetFinalizers(first.GetFinalizers())
		}
		if now.Object["status"] == nil && first.Object["status"] != nil && !w.lacks["status"] {
			now.Object["status"] = first.DeepCopy().Object["status"]
		}
	}
	if strings.HasPrefix(now.GetKind(), "Twin") {
		setStatus(now, clusterv1.PausedCondition, paused)
	}
}

// setStatus sets a condition True or False.
func setStatus(o *object, name string, is bool) {
	list, _ := at(o, "status", "conditions").([]any)
	for _, c := range list {
		if c := c.(map[string]any); c["type"] == name {
			c["status"] = map[bool]string{true: "True", false: "False"}[is]
		}
	}
}

// say puts a condition into the status of an object.
func say(o *object, name, status, reason, message string) {
	said := map[string]any{"type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2031-01-01T00:00:00Z"}
	list, _ := at(o, "status", "conditions").([]any)
	if i := slices.IndexFunc(list, func(c any) bool { return c.(map[string]any)["type"] == name }); i >= 0 {
		list[i] = said
		return
	}
	o.Object["status"].(map[string]any)["conditions"] = append(list, said)
}

// propagate gives a Machine of the control plane what that says of its Machines.
func (w *twin) propagate(m, controlPlane *object) {
	if _, master := m.GetLabels()[clusterv1.MachineControlPlaneLabel]; !master {
		return
	}
	spec := m.Object["spec"].(map[string]any)
	for _, name := range []string{"taints", "deletion", "readinessGates", "minReadySeconds"} {
		value := at(controlPlane, "spec", "machineTemplate", "spec", name)
		if w.lacks[name] {
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

// copyMetadata gives an object labels and annotations of the control plane's machineTemplate, and takes others of the suite away.
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

// keepSecrets looks after the kubeconfig that the twin owns, and, if it is broken, after bootstrap data that somebody has already.
func (w *twin) keepSecrets(ctx context.Context, namespace string) {
	secret := &corev1.Secret{}
	if w.store.Get(ctx, types.NamespacedName{Namespace: namespace, Name: namespace + "-kubeconfig"}, secret) != nil {
		return
	}
	wanted := kubeconfigTo(w.api.URL, w.token)
	if string(secret.Data["value"]) != string(wanted) && (len(secret.OwnerReferences) > 0 || w.lacks["respect"]) {
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
		if w.lacks["final data"] && at(&config, "spec", "servers") != nil || w.lacks["deterministic"] {
			data := &corev1.Secret{}
			if w.store.Get(ctx, client.ObjectKeyFromObject(&config), data) == nil {
				data.Data["value"] = append(data.Data["value"], 'x')
				_ = w.store.Update(ctx, data)
			}
		}
	}
}

// playedHub is the twin as a hub.
type playedHub struct{ *twin }

func (playedHub) Config() *rest.Config                  { return nil }
func (playedHub) Kubeconfig() string                    { return "" }
func (playedHub) Stop()                                 {}
func (h playedHub) Panics(context.Context) (int, error) { return len(h.lacks), nil }

// Writes counts those that the controllers remember.
func (h playedHub) Writes(namespace string, since time.Time) (map[string]int, error) {
	return h.writes.in(namespace, since), nil
}

// Crash has each write that makes or removes something in a namespace be the last of a life.
func (h playedHub) Crash(namespace string) func() int {
	h.mortal = namespace
	begun := time.Now()
	return func() int {
		h.mortal = ""
		deaths := 0
		for _, times := range h.writes.in(namespace, begun) {
			deaths += times
		}
		return deaths
	}
}

// writes are by the controllers, who may write by themselves, too.
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

// neverRest writes about a control plane now and then though nothing happens: something else each time, or, without
// thrift, what is there already.
func (w *twin) neverRest() {
	for i := 0; ; i++ {
		select {
		case <-w.t.Context().Done():
			return
		case <-time.After(held + held/2):
		}
		if w.lacks["rest"] {
			controlPlane := w.stored(w.t.Context(), twinControlPlane, "full", "full")
			controlPlane.SetAnnotations(map[string]string{"looked": strconv.Itoa(i)})
			if err := w.store.Update(w.t.Context(), controlPlane); err != nil {
				continue
			}
		}
		w.writes.add("full", twinControlPlane.Kind)
	}
}

// Apply makes a cluster: one without hosts has no more than what waits.
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
			delete(h.objects, title) // nobody restores it
		}
		waits := o.GetKind() == "Cluster" || o.GetKind() == "TwinControlPlane" || o.GetKind() == "Machine" && h.lacks["restraint"]
		if options.Without != nil && !waits {
			continue
		}
		if o.GetKind() == "Machine" && len(domains) > 0 {
			if !h.lacks["spread"] {
				o.Object["spec"].(map[string]any)["failureDomain"] = domains[0].(map[string]any)["name"]
			}
			domains = domains[1:]
		}
		if err := h.make(ctx, o); err != nil {
			return nil, err
		}
	}
	h.reconcile(ctx)
	return f.Cluster, nil
}

// make makes an object. Who dies at that has made it, and finds it again in the next life: but for one that gives another name to each.
func (w *twin) make(ctx context.Context, o *object) error {
	w.writes.add(o.GetNamespace(), o.GetKind())
	if err := w.store.Create(ctx, o.DeepCopy()); err != nil {
		return err
	}
	if !w.lacks["memory"] || w.mortal != o.GetNamespace() || o.GetKind() != "Machine" {
		return nil
	}
	again := o.DeepCopy()
	again.SetName(o.GetName() + "-again")
	again.SetUID(o.GetUID() + "-again")
	return w.store.Create(ctx, again)
}

// playedCluster is one of the twin's clusters.
type playedCluster struct {
	*twin
	key types.NamespacedName
}

func (c playedCluster) Key() types.NamespacedName                        { return c.key }
func (playedCluster) ApplyRest(context.Context) error                    { return nil }
func (playedCluster) Release()                                           {}
func (playedCluster) Forget()                                            {}
func (playedCluster) Available(context.Context) error                    { return nil }
func (c playedCluster) UsersKubeconfig(context.Context) ([]byte, error)  { return c.users, nil }
func (c playedCluster) Ignition(context.Context, string) ([]byte, error) { return c.ignition, nil }
func (c playedCluster) AgeKubeconfig(ctx context.Context) error          { return c.renew(ctx) }
func (c playedCluster) RotateKubeconfig(ctx context.Context) error       { return c.renew(ctx) }

// renew gives the cluster other credentials.
func (w *twin) renew(ctx context.Context) error {
	if !w.lacks["rotation"] {
		w.token = twinToken(w.t, strconv.FormatInt(time.Now().UnixNano(), 10))
	}
	w.reconcile(ctx)
	return nil
}

// workload is the API server of installed clusters, as far as it is asked.
func workload(t *testing.T) *httptest.Server {
	t.Helper()
	answers := map[string]string{
		"/api":          `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":         `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1":       `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"nodes","singularName":"node","namespaced":false,"kind":"Node","verbs":["list"]}]}`,
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
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"a","clusters":[{"name":"a","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],
		"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"users":[{"name":"a","user":{"token":%q}}]}`, url, token)
}

// twinToken is a token that lasts for a day.
func twinToken(t *testing.T, name string) string {
	t.Helper()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256,
		jwt.RegisteredClaims{ID: name, ExpiresAt: jwt.NewNumericDate(time.Now().Add(24 * time.Hour))}).SignedString([]byte("key"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return signed
}
