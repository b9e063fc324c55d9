package config_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// coreVariable is the folder below test/tools whose version of Cluster API core runs.
const coreVariable = "CORE"

// These tests need a real API server. One API server for all of them has Cluster API and the components of both
// providers, whose managers watch one namespace.
func TestOnManagementCluster(t *testing.T) {
	ctrl.SetLogger(logr.Discard()) // the API server's warnings about old versions
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	begin := time.Now()
	one := env.ManagerOptions{
		Manifests: "namespaced", Variables: map[string]string{"WATCHED_NAMESPACE": watched},
		// The manager has a Role for the lease, too. On a busy machine it must not lose the lease.
		ExtraArgs: []string{
			"--leader-elect", "--leader-elect-retry-period=200ms", "--leader-elect-lease-duration=3m",
			"--leader-elect-renew-deadline=2m",
		},
	}
	e, err := env.Start(ctx, env.Options{
		Dir: t.TempDir(), LeaveSignals: true, CoreTools: os.Getenv(coreVariable),
		Core: env.ManagerOptions{AllVersions: true}, Bootstrap: one, ControlPlane: one,
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Stop)

	t.Run("a manager of one namespace has there the rights that others have in all", func(t *testing.T) { checkRoles(ctx, t, e) })
	t.Run("the capacity for the cluster autoscaler", func(t *testing.T) { checkCapacity(ctx, t, e) })
	t.Run("the rights of users", func(t *testing.T) { checkUsers(ctx, t, e) })
	t.Run("these rights suffice", func(t *testing.T) { checkManagers(ctx, t, e, begin) })
	t.Run("the rights for other infrastructure providers are added", func(t *testing.T) { checkOtherInfrastructure(ctx, t, e) })
	t.Run("objects rendered from a ClusterInstance", func(t *testing.T) { checkSiteconfig(ctx, t, e) })
	t.Run("owners of Secrets", func(t *testing.T) { checkOwners(ctx, t, e) })
	t.Run("InfraEnvs of an older and of a newer assisted-service", func(t *testing.T) { checkNewerInfraEnvs(ctx, t, e) })
	t.Run("a field that another version lacks is rejected permanently", func(t *testing.T) { checkUnknownField(ctx, t, e.Client()) })
	t.Run("network plug-ins that an older assisted-service rejects", func(t *testing.T) { checkNetworkTypes(ctx, t, e.Client()) })
	t.Run("no edit reinstalls hosts without consent", func(t *testing.T) { checkReinstallation(ctx, t, e.Client()) })
	t.Run("no restore wipes hosts", func(t *testing.T) { checkRestoredHosts(ctx, t, e.Client()) })
	t.Run("no deletion of one object wipes hosts in use", func(t *testing.T) { checkHostDeletion(ctx, t, e.Client()) })
	t.Run("an edit of a template of configs warns", func(t *testing.T) { checkTemplateWarning(ctx, t, e.Config()) })
	// The last one: it deletes all BareMetalHosts.
	t.Run("managers start before the Bare Metal Operator is installed", func(t *testing.T) { checkStartWithoutMetal3(ctx, t, e) })
}

// checkUnknownField applies an AgentClusterInstall with a field that an older assisted-service lacks. It also
// applies a config with a field that an older bootstrap provider lacks.
func checkUnknownField(ctx context.Context, t *testing.T, c client.Client) {
	g := NewWithT(t)
	install := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "extensions.hive.openshift.io/v1beta1", "kind": "AgentClusterInstall",
		"metadata": map[string]any{"namespace": "default", "name": "lab"},
		"spec":     map[string]any{"provisionRequirements": map[string]any{"controlPlaneAgents": int64(2), "witnessAgents": int64(1)}},
	}}
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(install), client.FieldOwner("test"), client.DryRunAll)
	g.Expect(err).To(MatchError(ContainSubstring("witnessAgents")))
	g.Expect(kube.IsRefused(err)).To(BeTrue(), "%v", err)

	config := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "OpenshiftAssistedConfig",
		"metadata": map[string]any{"namespace": "default", "name": "lab"},
		"spec":     map[string]any{"bootMode": "LiveISO", "part": "Witness"},
	}}
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), client.FieldOwner("test"), client.DryRunAll)
	g.Expect(kube.UndeclaredField(err)).To(Equal("spec.part"),
		"an older bootstrap provider rejects the role of an arbiter in the same way: %v", err)
}

// checkNetworkTypes applies each supported network plug-in. docs/ztp.md lists the ones that the
// AgentClusterInstall of the tested assisted-service (April 2025) rejects. It also describes how the provider
// requests them instead.
func checkNetworkTypes(ctx context.Context, t *testing.T, c client.Client) {
	g := NewWithT(t)
	var refused []string
	for _, networkType := range networkTypes(t) {
		install := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "extensions.hive.openshift.io/v1beta1", "kind": "AgentClusterInstall",
			"metadata": map[string]any{"namespace": "default", "name": "lab"},
			"spec": map[string]any{
				"clusterDeploymentRef": map[string]any{"name": "lab"}, "networking": map[string]any{"networkType": networkType},
				"provisionRequirements": map[string]any{"controlPlaneAgents": int64(3)},
			},
		}}
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(install), client.FieldOwner("test"), client.DryRunAll)
		if err != nil {
			g.Expect(err).To(MatchError(ContainSubstring("spec.networking.networkType: Unsupported value")))
			g.Expect(kube.IsRefused(err)).To(BeTrue(), "%v", err)
			refused = append(refused, networkType)
		}
	}
	g.Expect(refused).To(ConsistOf("Calico", "Cilium", "CiscoACI", "None"), "the list in docs/ztp.md")
}

// networkTypes returns the values that networkType of a control plane may have.
func networkTypes(t *testing.T) []string {
	t.Helper()
	var values []string
	for _, crd := range ourDefinitions(t) {
		if crd.Spec.Names.Kind != "OpenshiftAssistedControlPlane" {
			continue
		}
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		for _, value := range spec.Properties["config"].Properties["networkType"].Enum {
			values = append(values, strings.Trim(string(value.Raw), `"`))
		}
	}
	return values
}
