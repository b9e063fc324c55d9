package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

// The kinds of the twin and of an infrastructure provider.
var (
	twinConfig       = kind{Group: "bootstrap." + capiGroup, Version: "v1beta1", Kind: "TwinConfig"}
	twinTemplate     = kind{Group: "bootstrap." + capiGroup, Version: "v1beta1", Kind: "TwinConfigTemplate"}
	twinControlPlane = kind{Group: "controlplane." + capiGroup, Version: "v1beta1", Kind: "TwinControlPlane"}
	twinClass        = kind{Group: "controlplane." + capiGroup, Version: "v1beta1", Kind: "TwinControlPlaneTemplate"}
	twinMachine      = kind{Group: "infrastructure." + capiGroup, Version: "v1beta1", Kind: "TwinMachine"}
	twinCluster      = kind{Group: "infrastructure." + capiGroup, Version: "v1beta1", Kind: "TwinCluster"}
	twinKinds        = []kind{twinConfig, twinTemplate, twinControlPlane, twinClass, twinMachine, twinCluster, twinRegistration}
)

// twinHook is the hook of the twin on its Machines.
const twinHook = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/twin"

// twin is a provider that is simulated in memory, with two installed clusters, full and small, in namespaces of
// the same names. Without defects it keeps the rules. Its controllers act at once, after each request of the
// suite.
type twin struct {
	*suite
	t *testing.T
	// store has the objects of the API server; the suite uses a client that triggers the controllers.
	store client.WithWatch
	// objects are the initial objects, crds the definitions of the twin's kinds. Tests break both before the
	// suite begins.
	objects map[string]*object
	crds    map[string]*apiextensionsv1.CustomResourceDefinition
	// shipped are the manifests of both providers.
	shipped map[*Component]string
	// defects are the names of the defects of the controllers.
	defects map[string]bool
	// refuse is called for each apply.
	refuse func(o *object) error
	// ignition and users are the data for hosts and users.
	ignition, users []byte
	token           string
	api             *httptest.Server
	// writes are the writes of the controllers.
	writes *writes
	// crashNamespace is the namespace whose writes crash the controllers; empty: none.
	crashNamespace string
	// limit is the error of operations that the hub of the twin does not have. Nil: it has all.
	limit error
	// everPaused are the namespaces whose cluster was paused once.
	everPaused map[string]bool
}

// playedContext is the context of a rule that Ginkgo does not run.
type playedContext struct {
	SpecContext
	ctx context.Context //nolint:containedctx // it is one
}

func (p playedContext) Deadline() (time.Time, bool) { return p.ctx.Deadline() }
func (p playedContext) Done() <-chan struct{}       { return p.ctx.Done() }
func (p playedContext) Err() error                  { return p.ctx.Err() }
func (p playedContext) Value(key any) any           { return p.ctx.Value(key) }

// newTwin returns a twin without defects.
func newTwin(t *testing.T) *twin {
	t.Helper()
	w := &twin{
		t: t, objects: map[string]*object{}, crds: map[string]*apiextensionsv1.CustomResourceDefinition{},
		defects: map[string]bool{}, shipped: map[*Component]string{}, writes: &writes{}, everPaused: map[string]bool{},
	}
	w.suite = &suite{
		Provider: &Provider{
			Bootstrap:    Component{Name: "twin", Kind: twinConfig, Template: twinTemplate, Change: map[string]any{"servers": []any{"one"}}},
			ControlPlane: Component{Name: "twin", Kind: twinControlPlane, Template: twinClass},
			Metadata: []byte("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: [{major: 0, " +
				"minor: 1, contract: v1beta2}]\n"),
			Installed: "Installed",
			OfHosts: func(_ context.Context, _ Hub, o *object) (bool, error) {
				return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.Kind == "TwinHost" }), nil
			},
			Templates: map[string][]byte{
				"cluster-template.yaml":  []byte("kind: Cluster\n"),
				"clusterclass-twin.yaml": []byte("apiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass\nmetadata: {name: twin}\n"),
			},
		},
		book: &book{played: map[string]playedRule{}}, rendered: map[*Component][]byte{}, ctx: t.Context(), end: func() {},
	}
	w.api = workload(t)
	w.token = twinToken(t, "one")
	w.users = kubeconfigTo(w.api.URL, twinToken(t, "other"))
	w.ignition = fmt.Appendf(nil, `{"systemd":{"units":[{"enabled":true,"contents":"ExecStart=/bin/touch %s"}]}}`, sentinel)
	w.addCRDs()
	w.fixtures.full, w.fixtures.small = w.addCluster("full", 3, 2), w.addCluster("small", 1, 0)
	w.fixtures.topology = w.fixtures.full
	w.writes.add("full", "TwinConfig")
	w.writes.add("small", "TwinConfig")
	for name, component := range w.components() {
		w.shipped[component] = fmt.Sprintf(twinManifests, name, component.Kind.Group, w.plural(component.Kind), w.plural(component.Template))
		component.Manifests = func(context.Context) ([]byte, error) { return []byte(w.shipped[component]), nil }
	}
	for _, declare := range []func(){
		w.manifestRules, w.clusterctlRules, w.waitingRules, w.installedRules, w.inPlaceRules, w.replacementRules,
		w.resilienceRules, w.topologyRules, w.crashRules, w.moveRules, w.idleRules, w.deletionRules,
	} {
		w.book.prepare = nil
		declare()
	}
	return w
}

func (w *twin) plural(k kind) string {
	name, _, _ := strings.Cut(contract.CalculateCRDName(k.Group, k.Kind), ".")
	return name
}

// twinManifests are the manifests of one provider, with verbs for type, group and names of resources.
const twinManifests = `
apiVersion: v1
kind: Namespace
metadata: {name: twin-system, labels: {cluster.x-k8s.io/provider: %[1]s-twin}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: twin, namespace: twin-system, labels: {cluster.x-k8s.io/provider: %[1]s-twin}}
spec:
  template:
    spec:
      containers:
      - {name: manager, image: "registry.example.com/twin/manager:v1", args: ["--v=${LEVEL:=0}"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: twin, labels: {cluster.x-k8s.io/provider: %[1]s-twin}}
rules:
- {apiGroups: [%[2]s], resources: ["%[3]s/finalizers"], verbs: [update]}
`

// addCRDs adds the definitions of the twin's kinds, and the rights of core on them.
func (w *twin) addCRDs() {
	str, integer := apiextensionsv1.JSONSchemaProps{Type: "string"}, apiextensionsv1.JSONSchemaProps{Type: "integer"}
	of := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	type fields = map[string]apiextensionsv1.JSONSchemaProps
	list := func(most int64, keys ...string) apiextensionsv1.JSONSchemaProps {
		least := int64(1)
		return apiextensionsv1.JSONSchemaProps{Type: "array", XListMapKeys: keys, MaxItems: &most, MinItems: &least}
	}
	least, most := int64(1), int64(253)
	machine := of(fields{"metadata": of(nil), "spec": of(fields{
		"infrastructureRef": of(fields{"apiGroup": str, "kind": str, "name": str}),
		"deletion":          of(fields{"nodeDrainTimeoutSeconds": integer}), "taints": list(64, "key", "effect"), "minReadySeconds": integer,
	})})
	controlPlane := of(fields{
		"replicas": integer, "version": {Type: "string", MinLength: &least}, "machineTemplate": machine,
		"rollout": of(fields{"after": str}), "controlPlaneEndpoint": of(nil),
	})
	schemas := map[kind]fields{
		twinConfig: {
			"spec":   of(fields{"servers": {Type: "array"}}),
			"status": of(fields{"dataSecretName": {Type: "string", MinLength: &least, MaxLength: &most}}),
		},
		twinTemplate:     {"spec": of(fields{"template": of(fields{"metadata": of(nil), "spec": of(nil)})})},
		twinControlPlane: {"spec": controlPlane, "status": of(fields{"versions": list(100, "version")})},
		twinClass:        {"spec": of(fields{"template": of(fields{"metadata": of(nil), "spec": of(fields{"machineTemplate": of(nil)})})})},
	}
	var rules []any
	for k, properties := range schemas {
		maps.Copy(properties, fields{"apiVersion": str, "kind": str, "metadata": of(nil)})
		schema := of(properties)
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name:   contract.CalculateCRDName(k.Group, k.Kind),
			Labels: map[string]string{contractLabel: "v1beta1"},
		}}
		crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: k.Kind, ListKind: k.Kind + "List",
				ShortNames: []string{strings.ToLower(k.Kind)}, Categories: []string{"cluster-api"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: k.Version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		}
		crd.Status.StoredVersions, crd.Status.AcceptedNames = []string{k.Version}, crd.Spec.Names
		w.crds[k.Kind] = crd
		rules = append(rules, map[string]any{
			"apiGroups": []any{k.Group}, "resources": []any{w.plural(k)},
			"verbs": []any{"create", "delete", "get", "list", "patch", "update", "watch"},
		})
	}
	role := w.add(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: core, labels: ` +
		`{cluster.x-k8s.io/aggregate-to-manager: "true"}}}`)
	role.Object["rules"] = rules
}

// add adds an object from YAML; of finds it by kind and names.
func (w *twin) add(format string, args ...any) *object {
	w.t.Helper()
	o := &object{}
	NewWithT(w.t).Expect(yaml.Unmarshal(fmt.Appendf(nil, format, args...), &o.Object)).To(Succeed())
	content, err := json.Marshal(o.Object)
	NewWithT(w.t).Expect(err).NotTo(HaveOccurred())
	NewWithT(w.t).Expect(o.UnmarshalJSON(content)).To(Succeed()) // with the number types of Kubernetes
	if o.GetUID() == "" {
		o.SetUID(types.UID(o.GetKind() + "-" + o.GetNamespace() + "-" + o.GetName()))
	}
	w.objects[title(o)] = o
	return o
}

// addCluster adds an installed cluster named like its namespace, with its history.
func (w *twin) addCluster(namespace string, masters, workers int) *fixture {
	w.t.Helper()
	const conditionOf = `{type: %s, status: "%s", reason: %s, message: "%s", lastTransitionTime: "2031-01-01T00:00:00Z"}`
	is := func(name, status, reason, message string) string {
		return fmt.Sprintf(conditionOf, name, status, reason, message)
	}
	w.add(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {namespace: %[1]s, name: %[1]s, finalizers: [core]}, spec: {
		controlPlaneEndpoint: {host: api.example.com, port: 6443}, topology: {classRef: {name: twin}, version: v1.2.3},
		controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: TwinControlPlane, name: %[1]s},
		infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: TwinCluster, name: %[1]s}},
		status: {controlPlane: {readyReplicas: %[2]d, upToDateReplicas: %[2]d}, conditions: [%[3]s, %[4]s, %[5]s, %[6]s]}}`,
		namespace, masters, is(clusterv1.ClusterControlPlaneAvailableCondition, "True", "A", ""),
		is(clusterv1.ClusterControlPlaneMachinesUpToDateCondition, "True", "A", ""),
		is(clusterv1.ClusterAvailableCondition, "True", "A", ""), is(clusterv1.ClusterTopologyReconciledCondition, "True", "A", ""))
	owner := func(apiVersion, kind, name string) string {
		return fmt.Sprintf(`[{apiVersion: %s, kind: %s, name: %s, uid: %s-%s-%s, controller: true}]`, apiVersion, kind, name,
			kind, namespace, name)
	}
	var all []string
	for _, name := range []string{
		"Available", "RollingOut", "ScalingUp", "ScalingDown", "MachinesReady", "MachinesUpToDate",
		"Remediating", "Deleting", "Paused",
	} {
		all = append(all, is(name, map[bool]string{true: "True", false: "False"}[name == "Available"], "A", ""))
	}
	ofCluster := owner("cluster.x-k8s.io/v1beta2", "Cluster", namespace)
	w.add(`{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: TwinCluster, metadata: {namespace: %[1]s, name: `+
		`%[1]s, ownerReferences: %[2]s}}`, namespace, ofCluster)
	controlPlane := w.add(`{apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: TwinControlPlane, metadata: {namespace: %[1]s,
		name: %[1]s, generation: 1, finalizers: [twin], ownerReferences: %[2]s},
		spec: {replicas: %[3]d, version: v1.2.3, controlPlaneEndpoint: {host: api.example.com, port: 6443},
		machineTemplate: {spec: {infrastructureRef: {apiGroup: a, kind: b, name: c}}}},
		status: {observedGeneration: 1, replicas: %[3]d, readyReplicas: %[3]d, availableReplicas: %[3]d, upToDateReplicas: %[3]d,
		selector: "%[5]s=%[1]s,%[6]s=%[1]s", version: v1.2.3, versions: [{version: v1.2.3, replicas: %[3]d}],
		initialization: {controlPlaneInitialized: true}, conditions: [%[4]s]}}`, namespace, ofCluster, masters, strings.Join(all, ", "),
		clusterv1.ClusterNameLabel, clusterv1.MachineControlPlaneNameLabel)
	secret := w.add(`{apiVersion: v1, kind: Secret, type: cluster.x-k8s.io/secret, metadata: {namespace: %[1]s, name: `+
		`%[1]s-kubeconfig, labels: {%[2]s: %[1]s}, ownerReferences: %[3]s}, data: {value: %[4]s}}`,
		namespace, clusterv1.ClusterNameLabel, owner("controlplane.cluster.x-k8s.io/v1beta1", "TwinControlPlane", namespace),
		base64.StdEncoding.EncodeToString(kubeconfigTo(w.api.URL, w.token)))
	w.add(`{apiVersion: v1, kind: Secret, metadata: {namespace: %[1]s, name: %[1]s-bmc, ownerReferences: %[2]s}}`,
		namespace, owner("twin.example.com/v1", "TwinHost", namespace))
	w.add(`{apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: TwinConfigTemplate, metadata: {namespace: %[1]s, name: `+
		`worker, ownerReferences: %[2]s}, spec: {template: {spec: {}}}}`, namespace, ofCluster)
	if workers > 0 {
		w.add(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineDeployment, metadata: {namespace: %[1]s, name: %[1]s,
			ownerReferences: %[2]s}, spec: {replicas: %[3]d, rollout: {strategy: {type: RollingUpdate}}, template: {spec: {version: v1.2.3,
			bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: TwinConfigTemplate, name: worker}}}}},
			status: {upToDateReplicas: %[3]d}}`, namespace, ofCluster, workers)
	}
	w.add(`{apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: TwinControlPlaneTemplate, metadata: {namespace: `+
		`%[1]s, name: class, ownerReferences: %[2]s}, spec: {template: {spec: {}}}}`, namespace, ofCluster)
	j := &journal{}
	record := func(version uint64, o *object, edit func(*object)) {
		o = o.DeepCopy()
		if edit != nil {
			edit(o)
		}
		j.entries = append(j.entries, entry{object: o, version: version})
	}
	young := func(o *object) {
		o.Object["status"] = map[string]any{"replicas": int64(0), "readyReplicas": int64(0), "version": "v1.2.3"}
		o.SetAnnotations(map[string]string{blockMove: ""})
	}
	record(1, controlPlane, young)
	for i := range masters + workers {
		name, labels := fmt.Sprintf("%s-%d", namespace, i), fmt.Sprintf(`%s: %s`, clusterv1.ClusterNameLabel, namespace)
		ofMachine, hooks := ofCluster, ""
		if i < masters {
			labels += fmt.Sprintf(`, %s: "", %s: %s`, clusterv1.MachineControlPlaneLabel, clusterv1.MachineControlPlaneNameLabel, namespace)
			ofMachine, hooks = owner("controlplane.cluster.x-k8s.io/v1beta1", "TwinControlPlane", namespace), twinHook+`: ""`
		}
		waiting := is("BootstrapConfigReady", "False", "Waiting", "for a host")
		machine := w.add(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, metadata: {namespace: %[1]s, name: %[2]s,
			labels: {%[3]s}, annotations: {%[8]s}, finalizers: [core], ownerReferences: %[4]s},
			spec: {clusterName: %[1]s, version: v1.2.3, minReadySeconds: 0, bootstrap: {dataSecretName: %[2]s,
			configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: TwinConfig, name: %[2]s}},
			infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: TwinMachine, name: %[2]s}},
			status: {nodeRef: {name: %[2]s}, conditions: [%[5]s, %[6]s, %[7]s]}}`, namespace, name, labels, ofMachine,
			is("Ready", "True", "A", ""), is("UpToDate", "True", "A", ""), is("BootstrapConfigReady", "True", "A", ""), hooks)
		w.add(`{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: TwinMachine, metadata: {namespace: %s, name: %s, `+
			`ownerReferences: %s, annotations: {cluster.x-k8s.io/cloned-from-name: a, cluster.x-k8s.io/cloned-from-groupkind: b}}}`,
			namespace, name, owner("cluster.x-k8s.io/v1beta2", "Machine", name))
		config := w.add(`{apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: TwinConfig, metadata: {namespace: %[1]s, name: %[2]s,
			generation: 1, finalizers: [twin], ownerReferences: %[3]s, annotations: {
			cluster.x-k8s.io/cloned-from-name: a, cluster.x-k8s.io/cloned-from-groupkind: b}}, spec: {},
			status: {observedGeneration: 1, dataSecretName: %[2]s, initialization: {dataSecretCreated: true}, conditions: [%[4]s, %[5]s]}}`,
			namespace, name, owner("cluster.x-k8s.io/v1beta2", "Machine", name), is("Ready", "True", "A", ""), is("Paused", "False", "A", ""))
		data := w.add(`{apiVersion: v1, kind: Secret, type: cluster.x-k8s.io/secret, metadata: {namespace: %[1]s, name: `+
			`%[2]s, labels: {%[3]s: %[1]s}, ownerReferences: %[4]s}, data: {value: YQ==}}`,
			namespace, name, clusterv1.ClusterNameLabel, owner("bootstrap.cluster.x-k8s.io/v1beta1", "TwinConfig", name))
		record(2, machine, func(o *object) {
			o.Object["status"] = map[string]any{"conditions": []any{parsed(waiting)}}
		})
		record(3, config, func(o *object) {
			o.Object["status"] = map[string]any{"conditions": []any{parsed(strings.Replace(waiting, "BootstrapConfigReady", "Ready", 1))}}
		})
		record(4, data, nil)
		record(5, config, nil)
	}
	record(6, secret, nil)
	record(7, controlPlane, func(o *object) {
		o.Object["status"].(map[string]any)["conditions"] = []any{parsed(is("Installed", "True", "A", ""))}
	})
	return &fixture{Cluster: playedCluster{w, types.NamespacedName{Namespace: namespace, Name: namespace}}, namespace: namespace, seen: j}
}

// parsed parses a part of an object.
func parsed(text string) any {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		panic(err)
	}
	return value
}

// begin starts the API server with the current objects of the twin.
func (w *twin) begin() {
	w.t.Helper()
	scheme := newScheme()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{
		twinConfig.GroupVersion(), twinControlPlane.GroupVersion(),
		twinMachine.GroupVersion(),
	})
	for _, k := range twinKinds {
		scheme.AddKnownTypeWithName(k, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(k.GroupVersion().WithKind(k.Kind+"List"), &unstructured.UnstructuredList{})
		mapper.Add(k, meta.RESTScopeNamespace)
	}
	for k := range scheme.AllKnownTypes() {
		mapper.Add(k, meta.RESTScopeNamespace)
	}
	var objects, withStatus []client.Object
	var full []object
	for _, crd := range w.crds {
		objects = append(objects, crd)
	}
	for _, o := range w.objects {
		if o.GetNamespace() == "full" && !w.ofHosts(w.t.Context(), o) {
			full = append(full, *o)
		}
		objects = append(objects, o.DeepCopy())
		if o.GetKind() != "Secret" && o.GetKind() != "ClusterRole" {
			withStatus = append(withStatus, o.DeepCopy())
		}
	}
	w.OwnerGraph = OwnerGraph(full)
	w.store = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithStatusSubresource(withStatus...).Build()
	w.world = world{
		hub: playedHub{w}, kinds: append(slices.Clone(twinKinds), clusterKind, machineKind, deploymentKind, secretKind),
		client: interceptor.NewClient(w.store, interceptor.Funcs{
			Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
				events, err := c.Watch(ctx, list, opts...)
				if err != nil {
					return nil, err
				}
				return watch.Filter(events, w.asWritten), nil
			},
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				return w.afterRequest(ctx, c.Create(ctx, o, opts...))
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				return w.afterRequest(ctx, c.Delete(ctx, o, opts...))
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				return w.afterRequest(ctx, c.Update(ctx, o, opts...))
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if len((&client.PatchOptions{}).ApplyOptions(opts).DryRun) > 0 {
					return w.tryPatch(ctx, o, patch)
				}
				if err := w.admit(ctx, o, patch); err != nil {
					return err
				}
				return w.afterRequest(ctx, c.Patch(ctx, o, patch, opts...))
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, patch client.Patch,
				opts ...client.SubResourcePatchOption,
			) error {
				return w.afterRequest(ctx, c.SubResource(name).Patch(ctx, o, patch, opts...))
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, name string, o client.Object,
				opts ...client.SubResourceUpdateOption,
			) error {
				if name == "scale" {
					return nil
				}
				return w.afterRequest(ctx, c.SubResource(name).Update(ctx, o, opts...))
			},
			SubResourceGet: func(_ context.Context, _ client.Client, _ string, o, scale client.Object, _ ...client.SubResourceGetOption) error {
				controlPlane := o.(*object)
				scale.(*object).Object = map[string]any{
					"spec":   map[string]any{"replicas": at(controlPlane, "spec", "replicas")},
					"status": map[string]any{"replicas": at(controlPlane, "status", "replicas"), "selector": at(controlPlane, "status", "selector")},
				}
				return nil
			},
			Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
				content, err := json.Marshal(o)
				if err != nil || w.refuse == nil {
					return err
				}
				applied := &object{}
				if err := applied.UnmarshalJSON(content); err != nil {
					return err
				}
				return w.refuse(applied)
			},
		}),
	}
	if w.defects["rest"] || w.defects["thrift"] {
		go w.writeForever()
	}
}

// asWritten converts an event to unstructured objects, which the fake client has converted to types of its
// scheme.
func (w *twin) asWritten(event watch.Event) (watch.Event, bool) {
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(event.Object)
	if err != nil {
		w.t.Error(err)
	}
	gvk, err := apiutil.GVKForObject(event.Object, w.store.Scheme())
	if err != nil {
		w.t.Error(err)
	}
	seen := &object{Object: o}
	seen.SetGroupVersionKind(gvk)
	event.Object = seen
	return event, true
}

// tryPatch shows the result of a patch in a dry run, which the fake client does not support.
func (w *twin) tryPatch(ctx context.Context, o client.Object, patch client.Patch) error {
	change, err := patch.Data(o)
	if err != nil {
		return err
	}
	now, err := w.stored(ctx, o.GetObjectKind().GroupVersionKind(), o.GetNamespace(), o.GetName()).MarshalJSON()
	if err != nil {
		return err
	}
	merged, err := jsonpatch.MergePatch(now, change)
	if err != nil {
		return err
	}
	return o.(*object).UnmarshalJSON(merged)
}

// admit refuses, as the admission of the twin, changes of a MachineDeployment for which core would replace
// Machines.
func (w *twin) admit(ctx context.Context, o client.Object, patch client.Patch) error {
	changed, ok := o.DeepCopyObject().(*object)
	if !ok || o.GetObjectKind().GroupVersionKind() != deploymentKind || w.defects["admission"] {
		return nil
	}
	if err := w.tryPatch(ctx, changed, patch); err != nil {
		return err
	}
	if w.rollsOut(changed) {
		return apierrors.NewInvalid(deploymentKind.GroupKind(), o.GetName(),
			field.ErrorList{field.Forbidden(field.NewPath("spec"), "Machines would be replaced")})
	}
	return nil
}

// rollsOut reports whether core replaces the Machines of a MachineDeployment.
func (w *twin) rollsOut(deployment *object) bool {
	return text(deployment, "spec", "rollout", "strategy", "type") == "RollingUpdate" &&
		!reflect.DeepEqual(at(deployment, "spec", "template"), at(w.objects[title(deployment)], "spec", "template"))
}

// afterRequest triggers the controllers after a successful request.
func (w *twin) afterRequest(ctx context.Context, err error) error {
	if err == nil {
		w.reconcile(ctx)
	}
	return err
}

// of returns an object of the twin before it begins.
func (w *twin) of(kind, namespace, name string) *object {
	w.t.Helper()
	o := w.objects[fmt.Sprintf("%s %s/%s", kind, namespace, name)]
	NewWithT(w.t).Expect(o).NotTo(BeNil(), "%s %s/%s", kind, namespace, name)
	return o
}

// set sets a field of an object of the twin before it begins; nil removes it.
func (w *twin) set(kind, namespace, name string, value any, fields ...string) {
	w.t.Helper()
	o := w.of(kind, namespace, name)
	if value == nil {
		unstructured.RemoveNestedField(o.Object, fields...)
		return
	}
	NewWithT(w.t).Expect(unstructured.SetNestedField(o.Object, value, fields...)).To(Succeed())
}

// field changes a part of the schema of one of the twin's kinds.
func (w *twin) field(k kind, change func(*apiextensionsv1.JSONSchemaProps), fields ...string) {
	version := &w.crds[k.Kind].Spec.Versions[0]
	var below func(p *apiextensionsv1.JSONSchemaProps, fields []string)
	below = func(p *apiextensionsv1.JSONSchemaProps, fields []string) {
		if len(fields) == 0 {
			change(p)
			return
		}
		next := p.Properties[fields[0]]
		below(&next, fields[1:])
		p.Properties[fields[0]] = next
	}
	below(version.Schema.OpenAPIV3Schema, fields)
}

// drop returns a change that removes a property.
func drop(name string) func(*apiextensionsv1.JSONSchemaProps) {
	return func(p *apiextensionsv1.JSONSchemaProps) { delete(p.Properties, name) }
}

// change changes entries in the history of a cluster.
func (f *fixture) change(which func(entry) bool, how func(*entry)) {
	for i := range f.seen.entries {
		if which(f.seen.entries[i]) {
			how(&f.seen.entries[i])
		}
	}
}

func ofKindAt(k kind, version uint64) func(entry) bool {
	return func(e entry) bool { return e.GetKind() == k.Kind && e.version == version }
}
