package claims

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
)

// GatherMachine finds the Machine that refers to the config and that Cluster API made its owner. A later Machine
// may have the name of a deleted one. For a while the cache then has the former Machine with the config of the
// later one. The Node and the data of the former Machine do not count for the later one. A config that is being
// deleted is in use as long as any Machine refers to the config.
func GatherMachine(ctx context.Context, reader client.Reader, f *facts.Facts) error {
	machines := &clusterv1.MachineList{}
	if err := reader.List(ctx, machines, client.InNamespace(f.Config.Namespace),
		client.MatchingFields{informer.MachineByConfig: f.Config.Name}); err != nil {
		return fmt.Errorf("cannot look for the Machine: %w", err)
	}
	for i := range machines.Items {
		machine := &machines.Items[i]
		if metav1.IsControlledBy(f.Config, machine) || f.Deleting() && len(machines.Items) == 1 {
			f.Machine = machine
		}
	}
	return nil
}
