package objects

import (
	"context"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// machineAPINamespace, machineRoleLabel and machineRunning belong to a cluster's own Machine API.
const machineAPINamespace, machineRoleLabel, machineRunning = "openshift-machine-api", "machine.openshift.io/cluster-api-machine-role",
	"Running"

// RunsMachineAPI reports whether a cluster's own Machine API manages its control plane. Like OpenShift's
// operators it checks for a running Machine of the control plane. A cluster that was installed without the
// Machine API has none.
func RunsMachineAPI(ctx context.Context, c client.Reader) (bool, error) {
	machines := &machinev1beta1.MachineList{}
	if err := c.List(ctx, machines, client.InNamespace(machineAPINamespace), client.HasLabels{machineRoleLabel}); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return slices.ContainsFunc(machines.Items, func(m machinev1beta1.Machine) bool {
		role := m.Labels[machineRoleLabel]
		return (role == "master" || role == "arbiter") && m.Status.Phase != nil && *m.Status.Phase == machineRunning
	}), nil
}
