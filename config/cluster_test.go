package config_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// coreVariable is the folder below test/tools whose version of Cluster API core runs.
const coreVariable = "CORE"

// What only a real API server tells: it has the components of both providers, whose managers watch one namespace, and Cluster API. One is started for all tests
// that need it.
func TestOnAManagementCluster(t *testing.T) {
	ctrl.SetLogger(logr.Discard()) // the API server's warnings about old versions
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	begin := time.Now()
	one := env.ManagerOptions{
		Manifests: "namespaced", Variables: map[string]string{"WATCHED_NAMESPACE": watched},
		ExtraArgs: []string{"--leader-elect", "--leader-elect-retry-period=200ms"}, // it has a Role, too
	}
	e, err := env.Start(ctx, env.Options{Dir: t.TempDir(), LeaveSignals: true, CoreTools: os.Getenv(coreVariable), Bootstrap: one, ControlPlane: one})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Stop)

	t.Run("a manager of one namespace may there what others may everywhere", func(t *testing.T) { checkRoles(ctx, t, e) })
	t.Run("this is enough for it", func(t *testing.T) { checkManagers(ctx, t, e, begin) })
	t.Run("the kinds of other infrastructure providers are added", func(t *testing.T) { checkOtherInfrastructure(ctx, t, e) })
	t.Run("what is rendered from a ClusterInstance", func(t *testing.T) { checkSiteconfig(ctx, t, e) })
	t.Run("owners of Secrets", func(t *testing.T) { checkOwners(ctx, t, e) })
	t.Run("no edit reinstalls hosts unless the user says so", func(t *testing.T) { checkReinstallation(ctx, t, e.Client()) })
}
