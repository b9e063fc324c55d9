package machines

import (
	"context"
	"errors"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdremoval"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// Updater keeps existing Machines, their OpenshiftAssistedConfigs and their infrastructure machines up to date.
type Updater struct {
	client client.Client
	writer *writer.Writer
}

// NewUpdater returns an Updater.
func NewUpdater(c client.Client, w *writer.Writer) *Updater { return &Updater{client: c, writer: w} }

// Sync keeps the existing Machines in step with the template. It does not wait for the installation: the
// cluster may have been moved here, without its assisted-service.
func (u *Updater) Sync(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Cluster == nil {
		return true, nil
	}
	var errs []error
	for _, m := range s.Found.Machines {
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		request := "update of Machine " + m.Name
		err := u.syncMachine(ctx, s, m)
		if err == nil {
			u.writer.Accepted(s, request)
		}
		switch {
		case kube.IsRefused(err):
			u.writer.Refused(s, request)
			reason, message := refusal(err, fmt.Sprintf("Machine %s cannot follow machineTemplate, correct it: %v", m.Name, err))
			s.Found.Block(tasks.MachineSync, reason, message)
		case err != nil:
			errs = append(errs, fmt.Errorf("cannot update Machine %s: %w", m.Name, err))
		case s.ClusterDeleting() && u.writer.Recent.Pending(apply.Key(m), m.ResourceVersion) > 0:
			// The applied object has no hook any more. Other clients may also own the annotation, and then
			// the apply does not remove it. DropAll removes the hook in that case.
			u.writer.Recent.Record(etcdremoval.HookKey(m), m.ResourceVersion)
		}
	}
	return true, errors.Join(errs...)
}

// syncedVersion returns the version to write into an existing Machine. The version stays during the installation, because
// no client needs the version of a kubelet by then. After the installation one request writes it together with the hook.
func syncedVersion(f *facts.Facts, m *clusterv1.Machine) string {
	if !f.Installed() && m.Status.NodeRef.IsDefined() {
		return m.Spec.Version
	}
	return versioning.MachineVersion(f, m)
}

// syncMachine propagates what changes in place to a Machine, its OpenshiftAssistedConfig and its infra machine.
func (u *Updater) syncMachine(ctx context.Context, s *scope.Scope, m *clusterv1.Machine) error {
	if err := u.writer.Apply(ctx, s, desired.SyncedMachine(s.Facts, m, syncedVersion(s.Facts, m)), m); err != nil {
		return err
	}
	arbiter := desired.IsArbiter(s.Facts, m)
	if config := s.Configs[m.Name]; config != nil && config.DeletionTimestamp.IsZero() {
		if err := applyConfig(ctx, u.writer, s, desired.Config(s.Facts, config.Name, arbiter, config), config); err != nil {
			return err
		}
	}
	infra, err := kube.InfraMachine(ctx, u.client, m)
	if err != nil || infra == nil || !infra.GetDeletionTimestamp().IsZero() {
		return err
	}
	if metadata := desired.InfraMetadata(s.Facts, arbiter, infra); metadata != nil {
		return u.writer.Apply(ctx, s, metadata, infra)
	}
	return nil
}
