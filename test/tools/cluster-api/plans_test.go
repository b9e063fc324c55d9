// Package clusterapi tests with functions of Cluster API whose modules the providers do not require.
package clusterapi

import (
	"encoding/csv"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/exp/topology/desiredstate"
)

// The file is written by TestPlansForClusterAPI of package upgradeplan.
func TestClusterAPIAcceptsUpgradePlans(t *testing.T) {
	file, err := os.Open("../../../controlplane/internal/upgradeplan/testdata/plans.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plans, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(plans) < 200 {
		t.Fatalf("the file has only %d plans", len(plans))
	}
	for _, plan := range plans {
		from, fromWorkers, to := plan[0], plan[1], plan[2]
		controlPlane, workers := strings.Fields(plan[3]), strings.Fields(plan[4])
		effective, err := desiredstate.DefaultAndValidateUpgradePlans(to, from, fromWorkers, controlPlane, workers)
		switch {
		case err != nil:
			t.Errorf("%v: %v", plan, err)
		case len(workers) > 0 && strings.Join(effective, " ") != plan[4]:
			t.Errorf("%v: Cluster API changes the plan of the workers to %v", plan, effective)
		}
	}
}
