package config_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// What only a real API server tells: it has the components of both providers and Cluster API. One is started for all tests that need it.
func TestOnAManagementCluster(t *testing.T) {
	ctrl.SetLogger(logr.Discard()) // the API server's warnings about old versions
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	e, err := env.Start(ctx, env.Options{Dir: t.TempDir(), LeaveSignals: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)

	t.Run("no edit reinstalls hosts unless the user says so", func(t *testing.T) { checkReinstallation(ctx, t, e.Client()) })
}
