package machines

import (
	"context"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize/english"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scaling"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/installed"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/replicas"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Deleter deletes Machines: surplus ones, and all Machines of a control plane that is being deleted.
type Deleter struct {
	client client.Client
	live   client.Reader
	gate   *etcdgate.Gate
	writer *writer.Writer
}

// NewDeleter returns a Deleter that reads Machines with the reader live.
func NewDeleter(c client.Client, live client.Reader, gate *etcdgate.Gate, w *writer.Writer) *Deleter {
	return &Deleter{client: c, live: live, gate: gate, writer: w}
}

// ScaleDown deletes surplus Machines, one after the other. In an installed cluster it deletes a Machine only
// when etcd can spare its host, because a deletion cannot be reverted.
func (d *Deleter) ScaleDown(ctx context.Context, s *scope.Scope) (bool, error) {
	switch {
	case s.Cluster == nil || s.ClusterDeleting() || len(s.Machines) <= int(s.Replicas()) ||
		slices.ContainsFunc(s.Machines, collections.HasDeletionTimestamp):
		return true, nil
	case !s.Begun:
		return true, d.deleteSurplus(ctx, s, scaling.InOrder(scaling.TooMany(s.Facts))[0])
	case !s.Installed():
		s.Found.Block(tasks.ScaleDown, clusterv1.ScalingDownReason,
			fmt.Sprintf("no control-plane host is removed from a cluster that is being installed: set spec.replicas back to %d", len(s.Machines)))
		return true, nil
	}
	situation, err := s.Removal()
	switch {
	case s.Fenced():
		step := removal.Fenced("no Machine is deleted")
		s.Found.Block(tasks.ScaleDown, step.Reason, step.Message)
		return true, nil
	case s.Reregistered:
		s.Found.Block(tasks.ScaleDown, controlplanev1.ReregisteredReason, installed.Reregistered(s.Facts))
		return true, nil
	case !s.Workload.Connected:
		s.Found.Block(tasks.ScaleDown, controlplanev1.ConnectionDownReason, scope.NotConnected)
		return true, nil
	case err != nil:
		return true, nil //nolint:nilerr // for the user to correct: CleanUp reports the invalid record
	case len(situation.ReleasedHosts) > 0 && s.Found.Blocked(tasks.HostRelease) != nil:
		return true, nil // the condition HostsReleasing reports the blocker of the clean-up
	case len(situation.ReleasedHosts) > 0:
		s.Found.Block(
			tasks.ScaleDown,
			controlplanev1.WaitingForMachinesDeletionReason,
			fmt.Sprintf("what is left of %s, whose host was released before, is handled first", situation.ReleasedHosts[0].Origin()),
		)
		return true, nil
	}
	return true, d.scaleInstalledDown(ctx, s, situation)
}

// scaleInstalledDown deletes a Machine, or reports why it deletes none.
func (d *Deleter) scaleInstalledDown(ctx context.Context, s *scope.Scope, situation *removal.Situation) error {
	inspection := d.gate.Begin(s, tasks.ScaleDown)
	if inspection == nil {
		return nil
	}
	defer inspection.End()
	etcd := inspection.Etcd(ctx, quorum.Machine{})
	if etcd == nil {
		return nil
	}
	name, against := scaling.Down(s.Facts, situation, etcd)
	switch {
	case name == "":
		inspection.Block(decision.Join(against))
		return nil
	case len(against) > 0:
		inspection.Block(decision.Join(against).About("Machine %s is not deleted", name))
		return nil
	}
	m := s.Machines[slices.IndexFunc(s.Machines, func(m *clusterv1.Machine) bool { return m.Name == name })]
	if !removal.HasHook(m) {
		inspection.Block(
			decision.Watch(
				controlplanev1.WaitingForEtcdReason,
				"Machine %s is not deleted: it does not have the etcd hook yet, see the condition MachinesUpToDate",
				name,
			),
		)
		return nil
	}
	d.gate.Done(s, tasks.ScaleDown)
	return d.deleteSurplus(ctx, s, m)
}

// deleteSurplus deletes a Machine, unless the cache is behind. Another Machine may have been deleted already,
// and then this Machine is not surplus.
func (d *Deleter) deleteSurplus(ctx context.Context, s *scope.Scope, m *clusterv1.Machine) error {
	live, err := s.LiveMachines(ctx, d.live)
	if err != nil {
		return err
	}
	remaining := slices.DeleteFunc(
		live, func(known clusterv1.Machine) bool { return !s.Controls(&known) || !known.DeletionTimestamp.IsZero() },
	)
	if len(remaining) < len(s.Machines) {
		s.Again.In(reconcile.CacheLag)
		return nil
	}
	if err := kube.Delete(ctx, d.client, m); err != nil {
		return err
	}
	s.Found.Event(corev1.EventTypeNormal, "MachineDeleted",
		"Deleted Machine %s: there were %s, and spec.replicas is %d",
		m.Name,
		english.Plural(len(s.Machines), "Machine", ""),
		s.Replicas(),
	)
	return nil
}

// DeleteAll deletes all control-plane Machines at once: the whole cluster is being deleted.
func (d *Deleter) DeleteAll(ctx context.Context, s *scope.Scope) (bool, error) {
	for _, m := range s.Machines {
		if err := kube.Delete(ctx, d.client, m); err != nil {
			return false, err
		}
	}
	if len(s.Machines) > 0 {
		s.Found.Block(
			tasks.Deletion,
			controlplanev1.WaitingForMachinesDeletionReason,
			"waiting for the deletion of control-plane Machines "+replicas.Names(s.Machines),
		)
		return false, nil
	}
	return true, nil
}

// AwaitWorkers waits for the deletion of the workers: their drain may need the control plane.
func (d *Deleter) AwaitWorkers(_ context.Context, s *scope.Scope) (bool, error) {
	if len(s.Workers) > 0 {
		s.Found.Block(tasks.Deletion, controlplanev1.WaitingForWorkersDeletionReason,
			"waiting for the deletion of worker Machines, or those that do not belong to the control plane: "+replicas.Names(s.Workers))
		return false, nil
	}
	return true, nil
}
