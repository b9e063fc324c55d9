package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// withCondition returns an object with one condition.
func withCondition(name, status, reason, message string) *object {
	c := map[string]any{"type": name, "status": status, "reason": reason, "message": message}
	return &object{Object: map[string]any{"status": map[string]any{"conditions": []any{c}}}}
}

// kubeconfigWith returns a kubeconfig whose user has the given token.
func kubeconfigWith(token string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"a",`+
		`"clusters":[{"name":"a","cluster":{"server":"https://a"}}],
		"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"users":[{"name":"a","user":{"token":%q}}]}`, token)
}

// upgraded returns an entry of a control plane during an upgrade from v1.2.3 to v1.2.4. The arguments are its lowest
// version and the number of its three Machines with each version.
func upgraded(lowest string, former, latter int64) entry {
	var versions []any
	for _, v := range []map[string]any{{"version": "v1.2.3", "replicas": former}, {"version": "v1.2.4", "replicas": latter}} {
		if v["replicas"] != int64(0) {
			versions = append(versions, v)
		}
	}
	return entry{object: &object{Object: map[string]any{
		"spec":   map[string]any{"version": "v1.2.4"},
		"status": map[string]any{"replicas": int64(3), "version": lowest, "versions": versions},
	}}}
}

var served = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true, Storage: true}}

// parts are checks of parts of rules, each with a provider that keeps the rule and one that breaks it. The keys
// are the ids of the rules and the defect.
var parts = map[string]func(t *testing.T, broken bool){
	"P16: reports that its Machines have no Nodes": func(_ *testing.T, broken bool) {
		expectNodesManaged(&object{Object: map[string]any{"status": map[string]any{"externalManagedControlPlane": broken}}})
	},
	"B5, P3: names a version that is not served": func(_ *testing.T, broken bool) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Labels = map[string]string{contractLabel: map[bool]string{true: "v1beta1_v1beta9", false: "v1beta1"}[broken]}
		crd.Spec.Versions = served
		expectContractLabel(crd)
	},
	"B20, P33: does not record the source of a clone": func(_ *testing.T, broken bool) {
		o := &object{Object: map[string]any{}}
		o.SetAnnotations(map[string]string{capiGroup + "/cloned-from-name": "template"})
		if !broken {
			o.SetAnnotations(map[string]string{capiGroup + "/cloned-from-name": "template", capiGroup + "/cloned-from-groupkind": "Kind.group"})
		}
		expectCloned(o)
	},
	"B17: differs from the condition of its Machine": func(_ *testing.T, broken bool) {
		config := withCondition("Ready", "False", "Waiting", "for a host")
		m := &clusterv1.Machine{}
		m.Status.Conditions = []metav1.Condition{{
			Type: "BootstrapConfigReady", Status: "False", Reason: "Waiting",
			Message: map[bool]string{true: "", false: "for a host"}[broken],
		}}
		expectMirrored(Default, config, m)
	},
	"B17: never reported its dependency": func(_ *testing.T, broken bool) {
		config := withCondition("Ready", "True", "Ready", "")
		once := entry{object: withCondition("Ready", "False", "Waiting", map[bool]string{true: "for nothing", false: "for a host"}[broken])}
		mirrored := entry{object: withCondition("BootstrapConfigReady", "False", "Waiting", "for a host")}
		Expect(reportedBy([]entry{once}, config, mirrored)).To(BeTrue())
	},
	"B18, P21: has a terminal failure in a nested field": func(_ *testing.T, broken bool) {
		deep := map[string]apiextensionsv1.JSONSchemaProps{map[bool]string{true: "failureReason", false: "reason"}[broken]: {}}
		expectNone(&apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"deprecated": {Properties: deep}}},
			"failureReason")
	},
	"B22: has a disabled unit for the sentinel": func(_ *testing.T, broken bool) {
		expectSentinel(fmt.Appendf(nil, `{"systemd":{"units":[{"enabled":%t,"contents":"ExecStart=/bin/touch %s"}]}}`, !broken, sentinel))
	},
	"P6: does not report its dependency": func(_ *testing.T, broken bool) {
		expectWaitsFor(Default, withCondition("InfrastructureReady", "False", "WaitingForCluster",
			map[bool]string{true: "waiting", false: "waiting for the Metal3Cluster"}[broken]), "Metal3Cluster")
	},
	"P11: names the newest version first": func(_ *testing.T, broken bool) {
		versions := []any{map[string]any{"version": "v4.9.10", "replicas": int64(2)}, map[string]any{"version": "v4.19.3", "replicas": int64(1)}}
		if broken {
			slices.Reverse(versions)
		}
		expectVersionsOf(Default, &object{Object: map[string]any{"status": map[string]any{"replicas": int64(3), "versions": versions}}})
	},
	"P11: leaves out the Machine during its upgrade": func(_ *testing.T, broken bool) {
		during := upgraded("v1.2.3", map[bool]int64{true: 1, false: 2}[broken], 1)
		expectVersionsReported(Default, []entry{upgraded("v1.2.3", 3, 0), during, upgraded("v1.2.4", 0, 3)}, "v1.2.3", "v1.2.4")
	},
	"P11: reports the newest version when the first Machine has it": func(_ *testing.T, broken bool) {
		during := upgraded(map[bool]string{true: "v1.2.4", false: "v1.2.3"}[broken], 2, 1)
		expectVersionsReported(Default, []entry{upgraded("v1.2.3", 3, 0), during, upgraded("v1.2.4", 0, 3)}, "v1.2.3", "v1.2.4")
	},
	"P11: reports a version that its list lacks": func(_ *testing.T, broken bool) {
		seen := []entry{upgraded("v1.2.3", 3, 0), upgraded("v1.2.3", 2, 1), upgraded("v1.2.4", 0, 3)}
		if broken {
			seen = slices.Insert(seen, 2, upgraded("v1.2.3", 0, 3))
		}
		expectVersionsReported(Default, seen, "v1.2.3", "v1.2.4")
	},
	"P11: goes back to the former version during the upgrade": func(_ *testing.T, broken bool) {
		seen := []entry{upgraded("v1.2.3", 3, 0), upgraded("v1.2.3", 2, 1), upgraded("v1.2.4", 0, 3)}
		if broken {
			seen = append(seen, seen[1:]...)
		}
		expectVersionsReported(Default, seen, "v1.2.3", "v1.2.4")
	},
	"I3: deletes objects that the user did not delete": func(_ *testing.T, broken bool) {
		o := named("a")
		before := []object{*o.DeepCopy()}
		if broken {
			o.SetDeletionTimestamp(ptr.To(metav1.Now()))
		}
		expectUntouched(before, []object{o})
	},
	"P25: shares its own credentials with users": func(_ *testing.T, broken bool) {
		expectDifferentCredentials(kubeconfigWith("one"), kubeconfigWith(map[bool]string{true: "one", false: "other"}[broken]))
	},
	"B8, P4: has no status subresource": func(_ *testing.T, broken bool) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1"}}
		if !broken {
			crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			}
		}
		Expect(hasStatus(crd)).To(BeTrue())
	},
	"P36: deletes its Machines before the workers are deleted": func(_ *testing.T, broken bool) {
		deleted := func(name string, master, deleted bool, version uint64) entry {
			o := &object{Object: map[string]any{
				"kind":     "Machine",
				"metadata": map[string]any{"uid": name, "deletionTimestamp": "2031-01-01T00:00:00Z"},
			}}
			if master {
				o.SetLabels(map[string]string{clusterv1.MachineControlPlaneLabel: ""})
			}
			return entry{object: o, deleted: deleted, version: version}
		}
		deleting := withCondition(clusterv1.DeletingCondition, "True", "WaitingForMachines", "2 workers")
		deleting.SetKind(twinControlPlane.Kind)
		first := map[bool]uint64{true: 1, false: 3}[broken]
		f := &fixture{seen: &journal{entries: []entry{
			deleted("worker", false, true, 2), deleted("master", true, false, first),
			deleted("master", true, true, 4),
			{object: deleting, version: 2},
			{object: deleting, deleted: true, version: 5},
		}}}
		s := &suite{Provider: &Provider{ControlPlane: Component{Kind: twinControlPlane}}, book: &book{}}
		s.expectOrder(f, []string{"master"})
	},
	"P36: deletes its Machines while the workers are not deleted": func(_ *testing.T, broken bool) {
		m := &clusterv1.Machine{}
		if broken {
			m.DeletionTimestamp = ptr.To(metav1.Now())
		}
		expectNotDeleted(Default, m)
	},
	"P15: does not set the taints that core accepts": func(_ *testing.T,
		broken bool,
	) {
		expectRefused(broken, "core refuses taints")
	},
	"P18: reports that it is initialized when its kubeconfig exists": func(_ *testing.T, broken bool) {
		kubeconfig := named("c-kubeconfig")
		kubeconfig.SetKind("Secret")
		controlPlane := &object{Object: map[string]any{
			"kind":   twinControlPlane.Kind,
			"status": map[string]any{"initialization": map[string]any{"controlPlaneInitialized": broken}},
		}}
		f := &fixture{
			Cluster: playedCluster{key: types.NamespacedName{Namespace: "held", Name: "c"}},
			seen:    &journal{entries: []entry{{object: &kubeconfig, version: 1}, {object: controlPlane, version: 2}}},
		}
		s := &suite{Provider: &Provider{ControlPlane: Component{Kind: twinControlPlane}}, book: &book{}}
		s.expectUninitialized(f)
	},
	"P36: does not report the blocker of its deletion": func(_ *testing.T, broken bool) {
		gone := func(name string, master bool, version uint64) entry {
			o := &object{Object: map[string]any{
				"kind":     "Machine",
				"metadata": map[string]any{"uid": name, "deletionTimestamp": "2031-01-01T00:00:00Z"},
			}}
			if master {
				o.SetLabels(map[string]string{clusterv1.MachineControlPlaneLabel: ""})
			}
			return entry{object: o, deleted: true, version: version}
		}
		deleting := withCondition(clusterv1.DeletingCondition, "True", "WaitingForMachines",
			map[bool]string{true: "", false: "2 workers"}[broken])
		deleting.SetKind(twinControlPlane.Kind)
		f := &fixture{seen: &journal{entries: []entry{
			gone("worker", false, 1), gone("master", true, 2),
			{object: deleting, version: 2},
			{object: deleting, deleted: true, version: 5},
		}}}
		s := &suite{Provider: &Provider{ControlPlane: Component{Kind: twinControlPlane}}, book: &book{}}
		s.expectOrder(f, []string{"master"})
	},
	"C2: has other metadata for each of its providers": func(t *testing.T, broken bool) {
		one, other := releaseFolder(t, "bootstrap-components.yaml", "contract: a"),
			releaseFolder(t, "control-plane-components.yaml", map[bool]string{true: "contract: b", false: "contract: a"}[broken])
		expectOneRelease([]string{one, other})
	},
	"C6: names the file of its components differently": func(t *testing.T, broken bool) {
		expectFileNames(releaseFolder(t, map[bool]string{true: "controlplane-components.yaml", false: "control-plane-components.yaml"}[broken],
			""), "control-plane")
	},
	"C19: is moved without the objects that it owns": func(_ *testing.T, broken bool) {
		arrived := []object{named("carried"), named("parent"), named("child")}
		if broken {
			arrived = arrived[:2]
		}
		expectCarried(arrived, []object{named("left")})
	},
	"C23: waits instead of being refused": func(_ *testing.T, broken bool) {
		expectRefusedMove(map[bool]string{
			true:  "timed out waiting for the annotation block-move",
			false: `cannot start the move operation while the control plane for "cluster.x-k8s.io/v1beta2, Kind=Cluster" a/b is not yet initialized`,
		}[broken])
	},
	"C24: installs an object in another namespace": func(_ *testing.T, broken bool) {
		o := named("a")
		o.SetLabels(map[string]string{clusterctlLabel: ""})
		o.SetNamespace(map[bool]string{true: "kube-system", false: elsewhereNamespace}[broken])
		expectTransformed([]*object{&o})
	},
}

// releaseFolder creates the folder of a release, with a file of components and its metadata.
func releaseFolder(t *testing.T, components, metadata string) string {
	t.Helper()
	dir := t.TempDir()
	Expect(os.WriteFile(filepath.Join(dir, components), []byte("kind: Namespace\n"), 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, "metadata.yaml"), []byte(metadata), 0o600)).To(Succeed())
	return dir
}

func named(name string) object {
	o := object{Object: map[string]any{}}
	o.SetName(name)
	return o
}

// Each of these providers breaks one rule. A rule that read its facts under a wrong name would pass always.
func TestBrokenProvidersAreNoticed(t *testing.T) {
	for name, check := range parts {
		t.Run(name, func(t *testing.T) {
			RegisterTestingT(t)
			healthy := InterceptGomegaFailures(func() { check(t, false) })
			broken := InterceptGomegaFailures(func() { check(t, true) })
			g := NewWithT(t)
			g.Expect(healthy).To(BeEmpty(), "the provider that keeps the rule")
			g.Expect(broken).NotTo(BeEmpty(), "the provider that breaks the rule")
		})
	}
}

// breaks are the changes with which a twin breaks a rule, by rule. Where a rule has several, the key names the
// defect, and the rule has to detect each.
var breaks = map[string]func(w *twin){
	"B1": func(w *twin) { w.crds["TwinConfig"].Spec.Scope = apiextensionsv1.ClusterScoped },
	"P1": func(w *twin) { w.crds["TwinControlPlaneTemplate"].Spec.Scope = apiextensionsv1.ClusterScoped },
	"B2": func(w *twin) { w.field(twinTemplate, drop("metadata")) },
	"B3": func(w *twin) { w.restrict(twinTemplate, "create") },
	"P2": func(w *twin) { w.restrict(twinControlPlane, "patch") },
	"B4": func(w *twin) { w.ship(&w.Bootstrap, "/finalizers", "/status") },
	"B5": func(w *twin) { w.crds["TwinConfigTemplate"].Labels = nil },
	"P3": func(w *twin) { w.crds["TwinControlPlane"].Labels[contractLabel] = "v1beta1_v1beta9" },
	"B6": func(w *twin) { w.Metadata = bytes.ReplaceAll(w.Metadata, []byte("v1beta2"), []byte("v1beta1")) },
	"B7": func(w *twin) {
		w.Before = func(context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
			before := w.crds["TwinConfig"].DeepCopy()
			properties := before.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties
			properties["ready"] = apiextensionsv1.JSONSchemaProps{Type: "boolean"}
			return []*apiextensionsv1.CustomResourceDefinition{before}, nil
		}
	},
	"B8":                                     func(w *twin) { w.crds["TwinConfig"].Spec.Names.Categories = nil },
	"P4":                                     func(w *twin) { w.crds["TwinControlPlane"].Spec.Versions[0].Subresources = nil },
	"P4: has the short name of another kind": func(w *twin) { w.crds["TwinControlPlaneTemplate"].Status.AcceptedNames.ShortNames = nil },
	"B9":                                     func(w *twin) { w.crds["TwinConfigTemplate"].Spec.Names.ListKind = "TwinConfigs" },
	"B10": func(w *twin) {
		w.field(twinConfig, func(p *apiextensionsv1.JSONSchemaProps) { p.MaxLength = nil }, "status", "dataSecretName")
	},
	"B11": func(w *twin) { w.set("Secret", "full", "full-3", "", "data", "value") },
	"B12": func(w *twin) { w.set("Secret", "full", "full-0", nil, "metadata", "labels") },
	"B13": func(w *twin) { w.set("Secret", "full", "full-4", nil, "metadata", "ownerReferences") },
	"B14": func(w *twin) { w.set("Secret", "full", "full-0", "YQ==", "data", "second") },
	"B15": func(w *twin) { w.defects["deterministic"] = true },
	"B16": func(w *twin) { w.fixtures.full.change(ofKindAt(secretKind, 4), func(e *entry) { e.version = 9 }) },
	"B17": func(w *twin) {
		w.fixtures.full.change(ofKindAt(twinConfig, 3), func(e *entry) { e.object.Object["status"] = nil })
	},
	"B17: reports nothing about an installed host": func(w *twin) { w.defects["constancy"] = true },
	"B18": func(w *twin) { w.addFailure(twinConfig) },
	"P21": func(w *twin) { w.addFailure(twinControlPlane) },
	"B19": func(w *twin) { w.defects["final data"] = true },
	"B20": func(w *twin) { w.set("TwinConfig", "full", "full-4", nil, "metadata", "annotations") },
	"B21": func(w *twin) {
		w.refuse = func(o *object) error {
			return apierrors.NewForbidden(schema.GroupResource{}, o.GetName(),
				errors.New("a template is immutable, also in a dry run of the topology"))
		}
	},
	"B22": func(w *twin) { w.ignition = []byte(`{}`) },
	"B25": func(w *twin) { w.defects["pause"] = true },
	"C4":  func(w *twin) { w.Bootstrap.Name = "Twin" },
	"C5": func(w *twin) {
		w.Metadata = bytes.ReplaceAll(w.Metadata, []byte("kind: Metadata"), []byte("kind: Meta"))
	},
	"C7":  func(w *twin) { w.ship(&w.Bootstrap, "kind: ClusterRole", "kind: Namespace") },
	"C8":  func(w *twin) { w.ship(&w.ControlPlane, "namespace: twin-system", "namespace: elsewhere") },
	"C9":  func(w *twin) { w.ship(&w.ControlPlane, "kind: Deployment", "kind: DaemonSet") },
	"C10": func(w *twin) { w.ship(&w.Bootstrap, "name: manager", "name: controller") },
	"C11": func(w *twin) { w.ship(&w.Bootstrap, "--v=", "--namespace=") },
	"C12": func(w *twin) { w.ship(&w.Bootstrap, "registry.example.com/twin/manager", "manager") },
	"C13": func(w *twin) { w.ship(&w.Bootstrap, "${LEVEL:=0}", "${LEVEL}") },
	"C14": func(w *twin) {
		w.ship(&w.ControlPlane, ", labels: {cluster.x-k8s.io/provider: control-plane-twin}", "")
	},
	"C16": func(w *twin) {
		w.Templates["clusterclass-twin.yaml"] = append(w.Templates["clusterclass-twin.yaml"], "# ${NAME}\n"...)
	},
	"C17": func(w *twin) { w.set("Secret", "full", "full-kubeconfig", nil, "metadata", "ownerReferences") },
	"C20": func(w *twin) { w.defects["status"] = true },
	"C21": func(w *twin) {
		w.fixtures.small.change(ofKindAt(twinControlPlane, 1), func(e *entry) { e.object.SetAnnotations(nil) })
	},
	"P5": func(w *twin) {
		w.set("TwinControlPlane", "full", "full", "other", "spec", "controlPlaneEndpoint", "host")
	},
	"P6": func(w *twin) { w.defects["restraint"] = true },
	"P7": func(w *twin) {
		w.field(twinControlPlane, func(p *apiextensionsv1.JSONSchemaProps) { p.Required = append(p.Required, "replicas") }, "spec")
	},
	"P8": func(w *twin) { w.set("TwinControlPlane", "full", "full", nil, "status", "upToDateReplicas") },
	"P9": func(w *twin) {
		w.set("TwinControlPlane", "full", "full", clusterv1.ClusterNameLabel+"=full", "status", "selector")
	},
	"P10": func(w *twin) { w.set("Machine", "full", "full-1", "1.2.3", "spec", "version") },
	"P11": func(w *twin) { w.set("TwinControlPlane", "full", "full", "v1.2.4", "status", "version") },
	"P12": func(w *twin) { w.set("Machine", "full", "full-2", nil, "metadata", "ownerReferences") },
	"P13": func(w *twin) { w.field(twinControlPlane, drop("deletion"), "spec", "machineTemplate", "spec") },
	"P14": func(w *twin) { w.defects["readinessGates"] = true },
	"P15": func(w *twin) { w.defects["taints"] = true },
	"P16": func(w *twin) {
		w.set("TwinControlPlane", "full", "full", true, "status", "externalManagedControlPlane")
	},
	"P17": func(w *twin) { w.field(twinControlPlane, drop("rollout"), "spec") },
	"P18": func(w *twin) {
		w.fixtures.full.change(ofKindAt(secretKind, 6), func(e *entry) { e.version = 9 })
	},
	"P20": func(w *twin) { w.set("TwinControlPlane", "full", "full", int64(0), "status", "observedGeneration") },
	"P22": func(w *twin) {
		w.field(twinClass, func(p *apiextensionsv1.JSONSchemaProps) {
			p.Properties["version"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}, "spec", "template", "spec")
	},
	"P23": func(w *twin) { w.set("Secret", "full", "full-kubeconfig", "Opaque", "type") },
	"P24": func(w *twin) { w.defects["rotation"] = true },
	"P25": func(w *twin) { w.users = kubeconfigTo(w.api.URL, w.token) },
	"P26": func(w *twin) { w.defects["respect"] = true },
	"P29": func(w *twin) { w.defects["metadata"] = true },
	"P30": func(w *twin) { w.set("Machine", "full", "full-0", nil, "spec", "minReadySeconds") },
	"P31": func(w *twin) { w.defects["in place"] = true },
	"P32": func(w *twin) { w.set("Machine", "full", "full-0", "another", "spec", "bootstrap", "configRef", "name") },
	"P33": func(w *twin) { w.set("TwinMachine", "full", "full-0", nil, "metadata", "annotations") },
	"P34": func(w *twin) { w.defects["pause"] = true },
	"I1":  func(w *twin) { w.defects["owners"] = true },
	"I6":  func(w *twin) { w.defects["composure"] = true },
	"I9":  func(w *twin) { w.defects["pause"] = true },
	"B24": func(w *twin) { w.defects["filter"] = true },
	"B26": func(w *twin) { w.defects["reasons"] = true },
	"P28": func(w *twin) { w.defects["spread"] = true },
	"P39": func(w *twin) { w.defects["in place"] = true },
	"P35": func(w *twin) { w.defects["remediation"] = true },
	"P38": func(w *twin) { w.defects["hooks"] = true },
	"I3":  func(w *twin) { w.defects["patience"] = true },
	"I4":  func(w *twin) { w.defects["cleanliness"] = true },
	"I11": func(w *twin) { w.defects["independence"] = true },
	"I12": func(w *twin) { w.defects["admission"] = true },
	"P39: reports the newest version when the first Machine has it (P11)": func(w *twin) {
		w.defects["versions"] = true
	},
	"I2": func(w *twin) { w.defects["cleanliness"] = true },
	"I5": func(w *twin) { w.defects["rest"] = true },
	"I5: sends writes without a change": func(w *twin) {
		w.defects["thrift"] = true
	},
	"I7":  func(w *twin) { w.defects["memory"] = true },
	"C18": func(w *twin) { w.defects["recognition"] = true },
	"C22": func(w *twin) { w.defects["farewell"] = true },
	"I14": func(w *twin) { w.defects["awakening"] = true },
	"I8":  func(w *twin) { w.defects["owners"] = true },
	"I10": func(w *twin) { w.defects["cleanliness"] = true },
}

// restrict removes a verb from the role of core.
func (w *twin) restrict(k kind, verb string) {
	for _, rule := range w.of("ClusterRole", "", "core").Object["rules"].([]any) {
		rule := rule.(map[string]any)
		if slices.Equal(rule["resources"].([]any), []any{w.plural(k)}) {
			rule["verbs"] = slices.DeleteFunc(slices.Clone(rule["verbs"].([]any)), func(v any) bool { return v == verb })
		}
	}
}

// ship replaces a text in the manifests of a provider.
func (w *twin) ship(component *Component, old, other string) {
	w.t.Helper()
	NewWithT(w.t).Expect(w.shipped[component]).To(ContainSubstring(old))
	w.shipped[component] = strings.ReplaceAll(w.shipped[component], old, other)
}

func (w *twin) addFailure(k kind) {
	w.field(k, func(p *apiextensionsv1.JSONSchemaProps) {
		p.Properties["failureReason"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}, "status")
}

// substitutes are checks that run instead of whole rules where a rule needs more than a twin has.
var substitutes = map[string]func(ctx context.Context, w *twin){
	"B24": func(ctx context.Context, w *twin) { w.expectFiltered(ctx, w.world) },
	"I8":  func(ctx context.Context, w *twin) { w.expectHealthy(ctx, w.world, w.fixtures.small) },
	"P39": func(ctx context.Context, w *twin) { w.expectUpgradedTwice(ctx, w.fixtures.full) },
	"C18": func(ctx context.Context, w *twin) {
		there := w.movable(ctx)
		arrived := w.essence(ctx, w.world)
		w.carry(ctx, there)
		w.expectArrived(ctx, there.world, arrived)
	},
	"C22": func(ctx context.Context, w *twin) {
		there := w.movable(ctx)
		kept := w.registered(ctx)
		w.carry(ctx, there)
		w.expectRegistrationKept(ctx, kept)
	},
	"I14": func(ctx context.Context, w *twin) {
		there := w.movable(ctx)
		arrived, kept := w.essence(ctx, w.world), w.registered(ctx)
		w.carry(ctx, there)
		there.carry(ctx, w)
		w.expectReturned(ctx, arrived, kept)
	},
}

// unprepared are the rules that need no preparation of their section.
var unprepared = map[string]bool{"C16": true, "I11": true}

// withoutBroken are the rules without a broken provider, with the reason. Rules that are not tested at all are in
// elsewhere.
var withoutBroken = map[string]string{
	"C1":  "clusterctl itself refuses an invalid repository",
	"C15": "clusterctl itself, and the API server, refuse templates",
	"I13": "a twin has no topology that creates workers; P39 checks that no Machine is replaced",
	"I15": "I7 checks the same with a smaller cluster",
}

// Every tested rule has a broken provider, or a reason for its lack.
func TestEveryRuleHasABrokenProvider(t *testing.T) {
	g := NewWithT(t)
	untested := map[string]bool{}
	for _, r := range untestedRules {
		untested[r.id] = true
	}
	broken := map[string]bool{}
	for names := range breaks {
		id, _, _ := strings.Cut(names, ":")
		broken[id] = true
	}
	for names := range parts {
		ids, _, _ := strings.Cut(names, ":")
		for id := range strings.SplitSeq(ids, ", ") {
			broken[id] = true
		}
	}
	for prefix, last := range lastRows {
		for number := range last {
			id := fmt.Sprintf("%s%d", prefix, number+1)
			g.Expect(broken[id] || withoutBroken[id] != "" || untested[id]).To(BeTrue(), "a provider that breaks %s, or the reason for its lack", id)
			g.Expect(broken[id] && withoutBroken[id] != "").To(BeFalse(), "%s has a broken provider", id)
		}
	}
}

// Each rule passes with a provider that keeps it, and fails with one that breaks it.
func TestEveryRuleNoticesABrokenProvider(t *testing.T) {
	shortenWaits(t)
	for _, name := range slices.SortedFunc(maps.Keys(breaks), func(a, b string) int { return order(a) - order(b) }) {
		id, _, _ := strings.Cut(name, ":")
		t.Run(name, func(t *testing.T) {
			RegisterTestingT(t)
			SetDefaultEventuallyPollingInterval(5 * time.Millisecond)
			SetDefaultConsistentlyDuration(still)
			SetDefaultConsistentlyPollingInterval(5 * time.Millisecond)
			g := NewWithT(t)
			within := func(timeout time.Duration) {
				soon, installTimeout, deleteTimeout = timeout, timeout, timeout
				SetDefaultEventuallyTimeout(timeout)
			}
			within(20 * time.Second)
			g.Expect(newTwin(t).plays(id)).To(Succeed(), "the provider that keeps the rule")
			within(400 * time.Millisecond)
			broken := newTwin(t)
			breaks[name](broken)
			err := broken.plays(id)
			g.Expect(err).To(HaveOccurred(), "the provider that breaks the rule")
			t.Log(err)
		})
	}
}

// shortenWaits shortens the observations of rules for a test.
func shortenWaits(t *testing.T) {
	t.Helper()
	former := []time.Duration{soon, installTimeout, deleteTimeout, still, held, idle}
	t.Cleanup(func() {
		soon, installTimeout, deleteTimeout, still, held, idle = former[0], former[1], former[2], former[3], former[4], former[5]
	})
	still, held, idle = 40*time.Millisecond, 60*time.Millisecond, 200*time.Millisecond
}

// A rule that needs an operation of the hub is skipped on a hub without the operation. It neither passes nor fails.
func TestRulesNeedOperationsOfTheHub(t *testing.T) {
	shortenWaits(t)
	for _, id := range []string{"B17", "B22", "P24", "P25", "P26", "I5", "I6"} {
		t.Run(id, func(t *testing.T) {
			RegisterTestingT(t)
			w := newTwin(t)
			w.limit = fmt.Errorf("cannot do this: %w", errors.ErrUnsupported)
			skipped := func() (skipped bool) {
				defer func() { skipped = recover() != nil }() // Skip of Ginkgo
				NewWithT(t).Expect(w.plays(id)).To(Succeed())
				return false
			}
			NewWithT(t).Expect(skipped()).To(BeTrue())
		})
	}
}

// plays runs a rule with a twin, and returns the first failure.
func (w *twin) plays(id string) error {
	w.begin()
	ctx := playedContext{ctx: w.t.Context()}
	if part := substitutes[id]; part != nil {
		return InterceptGomegaFailure(func() { part(ctx, w) })
	}
	rule, found := w.book.played[id]
	if !found {
		return errors.New("no such rule")
	}
	return InterceptGomegaFailure(func() {
		if rule.prepare != nil && !unprepared[id] {
			rule.prepare(ctx)
		}
		rule.check(ctx)
	})
}
