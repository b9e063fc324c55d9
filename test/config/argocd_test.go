package config_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/argocd"
)

const healthDir = "../../config/argocd/health"

func mustLoadChecks(t *testing.T) argocd.Checks {
	t.Helper()
	checks, err := argocd.Load(healthDir)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return checks
}

// The objects are recorded in the lab (test/e2e writes them to _artifacts/e2e-*/health). Each file begins with
// the expected health of its object and the first line of the message.
func TestHealthOfRecordedObjects(t *testing.T) {
	checks := mustLoadChecks(t)
	files, err := filepath.Glob("../../config/argocd/testdata/*.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	seen := map[string][]string{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			g := NewWithT(t)
			content, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			first, _, _ := strings.Cut(string(content), "\n")
			status, message, _ := strings.Cut(strings.TrimPrefix(first, "# "), ": ")
			recorded := &unstructured.Unstructured{Object: object(t, string(content))}
			health, err := checks.Of(t.Context(), recorded)
			g.Expect(err).NotTo(HaveOccurred())
			line, _, _ := strings.Cut(health.Message, "\n")
			g.Expect(argocd.Health{Status: health.Status, Message: line}).To(Equal(argocd.Health{Status: status, Message: message}))
			seen[recorded.GetKind()] = append(seen[recorded.GetKind()], status)
		})
	}
	for kind := range checks {
		NewWithT(t).Expect(seen[kind.Kind]).To(ContainElements(argocd.Progressing, argocd.Healthy), "of %s", kind.Kind)
	}
}

// The lab does not reach these situations, or not in each run.
func TestHealthOfRareSituations(t *testing.T) {
	checks := mustLoadChecks(t)
	const (
		cluster = "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\n"
		host    = "apiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\n"
		install = "apiVersion: extensions.hive.openshift.io/v1beta1\nkind: AgentClusterInstall\nmetadata: {generation: 1}\n"
		plane   = "apiVersion: controlplane.cluster.x-k8s.io/v1beta1\nkind: OpenshiftAssistedControlPlane\nmetadata: {generation: 1}\n" +
			"status: {observedGeneration: 1, conditions: [{type: Installed, status: 'True', reason: Installed}, {type: Available, status: 'False', "
		ours   = "metadata: {generation: 1}\nspec: {controlPlaneRef: {kind: OpenshiftAssistedControlPlane}}\n"
		theirs = "metadata: {generation: 1}\nspec: {controlPlaneRef: {kind: KubeadmControlPlane}}\n"
		down   = "status: {observedGeneration: 1, conditions: [{type: Available, status: 'False', reason: NotAvailable, " +
			"message: not yet}, {type: ControlPlaneInitialized, status: 'True', reason: Initialized}, {type: " +
			"ControlPlaneAvailable, status: 'False', reason: NotAvailable, message: etcd}]}"
	)
	for situation, tc := range map[string]struct{ object, status, message string }{
		"a Cluster that is not reconciled yet": {cluster + ours, argocd.Progressing, "waiting for Cluster API to read the Cluster"},
		"a Cluster whose spec was just edited": {
			cluster + "metadata: {generation: 2}\nstatus: {observedGeneration: 1, conditions: [{type: Available, status: " +
				"'True', reason: Available}]}",
			argocd.Progressing, "waiting for Cluster API to read the Cluster",
		},
		"a Cluster that serves no longer":                        {cluster + ours + down, argocd.Degraded, "ControlPlaneAvailable: etcd"},
		"a Cluster of another provider, which may be installing": {cluster + theirs + down, argocd.Progressing, "Available: not yet"},
		"a Cluster whose installation failed": {
			cluster + ours + strings.Replace(down, "reason: NotAvailable, message: etcd", "reason: InstallationFailed, message: disk", 1),
			argocd.Degraded, "ControlPlaneAvailable: disk",
		},
		"a Cluster that is being installed": {
			cluster + ours + strings.Replace(down, "reason: NotAvailable, message: etcd", "reason: WaitingForInstallation, message: later", 1),
			argocd.Progressing, "Available: not yet",
		},
		"a Cluster that was just installed and comes up": {
			cluster + ours + strings.Replace(down, "reason: NotAvailable, message: etcd", "reason: WaitingForHealthyCluster, message: etcd", 1),
			argocd.Progressing, "Available: not yet",
		},
		"a control plane that was just installed and comes up": {
			plane + "reason: WaitingForHealthyCluster, message: etcd}]}", argocd.Progressing, "WaitingForHealthyCluster: etcd",
		},
		"a Cluster whose only host restarts for an upgrade": {
			cluster + ours + strings.Replace(down, "status: 'False', reason: NotAvailable, message: etcd",
				"status: Unknown, reason: ControlPlaneRestarting, message: upgrade", 1), argocd.Progressing, "Available: not yet",
		},
		"a control plane whose only host restarts for an upgrade": {
			strings.Replace(plane, "type: Available, status: 'False'", "type: Available, status: Unknown", 1) +
				"reason: ControlPlaneRestarting, message: upgrade}]}", argocd.Progressing, "ControlPlaneRestarting: upgrade",
		},
		"a control plane whose only host does not come back from the upgrade": {
			strings.Replace(plane, "type: Available, status: 'False'", "type: Available, status: Unknown", 1) +
				"reason: ConnectionDown, message: upgrade}]}", argocd.Degraded, "ConnectionDown: upgrade",
		},
		"a control plane with a lost etcd member": {
			strings.Replace(plane, "Available, status: 'False'", "Available, status: 'True'", 1) +
				"reason: Available}, {type: EtcdClusterHealthy, status: 'False', reason: NotHealthy, message: n1 is down}]}",
			argocd.Degraded, "NotHealthy: n1 is down",
		},
		"a control plane with a Node that has no Machine": {
			strings.Replace(plane, "Available, status: 'False'", "Available, status: 'True'", 1) +
				"reason: Available}, {type: EtcdClusterHealthy, status: 'False', reason: NodeWithoutMachine, message: n9 came back}]}",
			argocd.Degraded, "NodeWithoutMachine: n9 came back",
		},
		"a control plane of which a host waits in etcd": {
			strings.Replace(plane, "Available, status: 'False'", "Available, status: 'True'", 1) +
				"reason: Available}, {type: MachinesCreated, status: 'True', reason: MachinesCreated}, {type: ScalingDown, status: 'True', " +
				"reason: ScalingDown}, {type: HostsReleasing, status: 'True', reason: EtcdQuorumAtRisk, message: n1 is down}]}",
			argocd.Degraded, "EtcdQuorumAtRisk: n1 is down",
		},
		"a control plane of which a host is being released": {
			strings.Replace(plane, "Available, status: 'False'", "Available, status: 'True'", 1) +
				"reason: Available}, {type: MachinesCreated, status: 'True', reason: MachinesCreated}, {type: ScalingDown, status: 'True', " +
				"reason: ScalingDown}, {type: HostsReleasing, status: 'True', reason: HostsReleasing, message: releasing m0}]}",
			argocd.Progressing, "HostsReleasing: releasing m0",
		},
		"a control plane with a Node that is being deleted with its Machine": {
			strings.Replace(plane, "Available, status: 'False'", "Available, status: 'True'", 1) +
				"reason: Available}, {type: MachinesCreated, status: 'True', reason: MachinesCreated}, {type: EtcdClusterHealthy, " +
				"status: Unknown, reason: WaitingForNodeDeletion, message: n9}]}", argocd.Healthy,
			"the cluster is installed and its control plane serves",
		},
		"a control plane that does not serve": {plane + "reason: NotAvailable, message: etcd}]}", argocd.Degraded, "NotAvailable: etcd"},
		"a Cluster that is being upgraded": {
			cluster + "metadata: {generation: 1}\nstatus: {observedGeneration: 1, conditions: [{type: Available, status: " +
				"'True', reason: Available}, {type: RollingOut, status: 'True', reason: RollingOut, message: one}]}",
			argocd.Progressing, "RollingOut: one",
		},
		"a topology that cannot be reconciled": {
			cluster + ours + "status: {observedGeneration: 1, conditions: [{type: Available, status: 'True', reason: " +
				"Available}, {type: TopologyReconciled, status: 'False', reason: ReconcileFailed, message: no class}]}",
			argocd.Degraded, "TopologyReconciled: no class",
		},
		"a Cluster of v1beta1": {
			"apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\n" + ours +
				"status: {observedGeneration: 1, phase: Provisioned, v1beta2: {conditions: [{type: Available, status: 'False', " +
				"reason: NotAvailable, message: hosts}]}}",
			argocd.Progressing, "Available: hosts",
		},
		"a Cluster that is paused": {cluster + "metadata: {}\nspec: {paused: true}", argocd.Suspended, "the Cluster is paused"},
		"a host in error": {
			host + "metadata: {}\nstatus: {operationalStatus: error, errorType: registration error, errorMessage: BMC refuses, " +
				"provisioning: {state: registering}}",
			argocd.Degraded, "registration error: BMC refuses",
		},
		"a host that waits for its turn": {
			host + "metadata: {}\nstatus: {operationalStatus: delayed, provisioning: {state: inspecting}}",
			argocd.Progressing, "inspecting: waiting for operations on other hosts",
		},
		"a host without BMC": {
			host + "metadata: {}\nstatus: {provisioning: {state: unmanaged}}", argocd.Suspended,
			"spec.bmc is not set: the host is not managed",
		},
		"a host that is not reconciled yet": {host + "metadata: {}", argocd.Progressing, "waiting for the Bare Metal Operator to read the host"},
		"a host that is paused": {
			host +
				"metadata: {annotations: {baremetalhost.metal3.io/paused: ''}}\nstatus: {operationalStatus: error}", argocd.Suspended,
			"the host is paused by an annotation",
		},
		"an externally provisioned host": {
			host + "metadata: {}\nstatus: {operationalStatus: OK, provisioning: {state: externally provisioned}}", argocd.Healthy,
			"the host was installed by another client",
		},
		"a canceled installation": {
			install + "status: {conditions: [{type: Stopped, status: 'True', reason: InstallationCancelled, message: another client " +
				"did}, {type: Completed, status: 'False', reason: InstallationFailed}]}",
			argocd.Degraded, "Stopped: another client did",
		},
		"an installation that assisted-service refuses": {
			install + "status: {conditions: [{type: SpecSynced, status: 'False', reason: InputError, message: bad CIDR}]}",
			argocd.Degraded, "SpecSynced: bad CIDR",
		},
		"an installation of which assisted-service has not heard": {
			install + "status: {conditions: [{type: SpecSynced, status: 'False', reason: BackendError, message: later}]}",
			argocd.Progressing, "SpecSynced: later",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(checks.Of(t.Context(),
				&unstructured.Unstructured{Object: object(t, tc.object)})).To(Equal(argocd.Health{Status: tc.status, Message: tc.message}))
		})
	}
}

// arrivingLater are reasons for a missing input that another sync wave or a secrets operator may create. Argo
// CD aborts a sync on a degraded object.
var arrivingLater = []string{
	"PullSecretMissing", "ManifestsMissing", "ClusterImageSetMissing", "InfraTemplateMissing",
	"WaitingForNMStateConfig", "WaitingForImport",
}

// harmless are reasons that are reported immediately but do not block, or only give advice.
var passing = []string{"HostInstalled", "DeletingAgent", "DeletingInfraEnv", "PreflightWarnings", "HostsLagging", "ValidationsIgnored"}

// retried are reasons of operations that other components retry automatically, mostly with success.
var retried = []string{"HostFailed"}

// A reason is degraded exactly if it is reported immediately and the user has to act.
func TestEachReasonHasAHealth(t *testing.T) {
	checks := mustLoadChecks(t)
	for _, kind := range []struct {
		schema.GroupVersionKind
		provider, condition string
		urgent              func(t *testing.T) func(reason string) bool
	}{
		{
			schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta1", Kind: "OpenshiftAssistedControlPlane"},
			"controlplane", "Installed",
			func(t *testing.T) func(string) bool {
				t.Helper()
				late := namesIn(t, "../../controlplane/internal/status/urgency.go", "deferrable")
				return func(reason string) bool { return !slices.Contains(late, reason) }
			},
		},
		{
			schema.GroupVersionKind{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta1", Kind: "OpenshiftAssistedConfig"},
			"bootstrap", "Ready",
			func(t *testing.T) func(string) bool {
				t.Helper()
				urgent := namesIn(t, "../../bootstrap/internal/status/stages.go", "urgent")
				return func(reason string) bool { return slices.Contains(urgent, reason) }
			},
		},
	} {
		t.Run(kind.Kind, func(t *testing.T) {
			g := NewWithT(t)
			urgent := kind.urgent(t)
			for name, reason := range reasonsOf(t, "../../"+kind.provider+"/api/v1beta1/conditions.go") {
				finding := &unstructured.Unstructured{Object: object(t,
					"metadata: {generation: 1}\nstatus: {observedGeneration: 1, conditions: [{type: "+kind.condition+
						", status: 'False', reason: "+reason+", message: why}]}")}
				finding.SetGroupVersionKind(kind.GroupVersionKind)
				health, err := checks.Of(t.Context(), finding)
				g.Expect(err).NotTo(HaveOccurred())
				wanted := urgent(name) && !slices.Contains(slices.Concat(arrivingLater, passing, retried), reason)
				if wanted {
					g.Expect(health.Status).To(Equal(argocd.Degraded), reason)
				} else {
					g.Expect(health.Status).NotTo(Equal(argocd.Degraded), reason)
				}
			}
		})
	}
}

// The manifests for users are generated from the scripts, for Argo CD and for the OpenShift GitOps operator.
func TestArgoCDManifestsHaveTheChecks(t *testing.T) {
	g := NewWithT(t)
	checks := mustLoadChecks(t)
	wanted, lists := map[string]any{}, map[string]any{}
	for kind, script := range checks {
		wanted["resource.customizations.health."+kind.Group+"_"+kind.Kind] = script
		lists[kind.Group+"/"+kind.Kind] = script
	}
	configMaps := components(t, "argocd/health")
	g.Expect(configMaps).To(HaveLen(1))
	g.Expect(configMaps[0]).To(And(HaveKeyWithValue("metadata", HaveKeyWithValue("name", "argocd-cm")), HaveKeyWithValue("data", wanted)))

	resources := components(t, "argocd/openshift-gitops")
	g.Expect(resources).To(HaveLen(1), "the ConfigMap is only the source")
	g.Expect(resources[0]).To(HaveKeyWithValue("kind", "ArgoCD"))
	listed, _, err := unstructured.NestedSlice(resources[0], "spec", "resourceHealthChecks")
	g.Expect(err).NotTo(HaveOccurred())
	got := map[string]any{}
	for _, item := range listed {
		check := item.(map[string]any)
		got[check["group"].(string)+"/"+check["kind"].(string)] = check["check"]
	}
	g.Expect(got).To(Equal(lists))
}

// reasonsOf returns the values of the constants ...Reason that a file defines, by name.
func reasonsOf(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	reasons := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || !strings.HasSuffix(spec.Names[0].Name, "Reason") {
			return true
		}
		if literal, is := spec.Values[0].(*ast.BasicLit); is {
			value, err := strconv.Unquote(literal.Value)
			g.Expect(err).NotTo(HaveOccurred())
			reasons[spec.Names[0].Name] = value
		}
		return true
	})
	g.Expect(reasons).NotTo(BeEmpty())
	return reasons
}

// namesIn returns the names of the constants in the variable or the fields of the given name.
func namesIn(t *testing.T, file, list string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var names []string
	collect := func(n ast.Node) bool {
		if selector, is := n.(*ast.SelectorExpr); is {
			names = append(names, selector.Sel.Name)
		}
		return true
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if n.Names[0].Name == list {
				ast.Inspect(n, collect)
			}
		case *ast.KeyValueExpr:
			if key, is := n.Key.(*ast.Ident); is && key.Name == list {
				ast.Inspect(n.Value, collect)
			}
		}
		return true
	})
	NewWithT(t).Expect(names).NotTo(BeEmpty(), "%s in %s", list, file)
	return names
}
