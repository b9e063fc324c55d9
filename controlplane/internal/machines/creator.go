// Package machines creates, updates and deletes the control-plane Machines of a cluster.
package machines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scaling"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/replicas"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Creator creates the control-plane Machines, each with its OpenshiftAssistedConfig and its infrastructure machine.
type Creator struct {
	client client.Client
	gate   *etcdgate.Gate
	writer *writer.Writer
	clock  clock.PassiveClock
	// Failing records since when a creation fails for transient reasons.
	Failing *reconcile.StartTimes[string]
	// Watch watches the kind of an infrastructure template.
	Watch func(template client.Object) error
}

// NewCreator returns a Creator that watches no templates.
func NewCreator(c client.Client, gate *etcdgate.Gate, w *writer.Writer, clk clock.PassiveClock) *Creator {
	return &Creator{
		client: c, gate: gate, writer: w, clock: clk,
		Failing: reconcile.NewStartTimes[string](clk), Watch: func(client.Object) error { return nil },
	}
}

// formerObjectsInterval is how often the objects of a former Machine of the same name are read again. Not all
// their kinds are watched.
const formerObjectsInterval = reconcile.CacheLag * 10

// maxDeletionTime is how long the deletion of an object of a former Machine may take before this is a failure.
// Meanwhile the host is deprovisioned and its disks are cleaned.
const maxDeletionTime = time.Hour

// CreateMissing creates all missing Machines at once: assisted-service starts the installation only with all
// hosts. The missing Machines of an installed cluster wait until etcd can add their hosts.
func (c *Creator) CreateMissing(ctx context.Context, s *scope.Scope) (bool, error) {
	missing := scaling.Missing(int(s.Replicas()), len(s.Machines), s.Found.Stuck)
	switch {
	case missing > 0 && s.ClusterDeleting():
		s.Block(controlplanev1.WaitingForWorkersDeletionReason, scope.ClusterDeleting)
	case missing > 0 && s.Begun && !s.Progress.DayTwo:
		s.Block(controlplanev1.WaitingForInstallationReason, creationBlocker(s.Phase))
	case missing > 0 && s.Installed():
		s.Missing = missing
	case missing <= 0:
		c.blockCreation(s)
	default:
		if slots := freeSlots(s, missing); len(slots) > 0 {
			return true, c.create(ctx, s, slots)
		}
	}
	return true, nil
}

// freeSlots returns the slots of the missing Machines. If they cannot be created it reports why and returns
// none.
func freeSlots(s *scope.Scope, missing int) []desired.Slot {
	if unowned := s.WithoutOwner(); len(unowned) > 0 {
		s.Block(controlplanev1.MachinesWithoutOwnerReason, fmt.Sprintf("No control-plane Machine is created: Machines without owner exist, "+
			"as after a restore: %s. Restore their MachineSets and MachineDeployments. "+
			"If one is a control-plane Machine, set its labels %s and %s=%s. Deleting such a Machine wipes its host",
			replicas.Names(unowned),
			clusterv1.MachineControlPlaneLabel,
			clusterv1.MachineControlPlaneNameLabel,
			s.Labels()[clusterv1.MachineControlPlaneNameLabel]))
		return nil
	}
	slots, err := desired.FreeSlots(s.Facts, missing)
	if err != nil {
		s.Block(controlplanev1.InvalidConfigurationReason, err.Error())
		return nil
	}
	slots = slices.DeleteFunc(slots, func(slot desired.Slot) bool {
		taken := slices.ContainsFunc(s.Workers, func(m *clusterv1.Machine) bool { return m.Name == slot.Name })
		if taken {
			s.Block(controlplanev1.MachineCreationFailedReason, fmt.Sprintf("Machine %s was removed from the control plane and blocks its "+
				"replacement: restore its labels %s and %s. To replace the Machine, delete it afterwards, which wipes its host", slot.Name,
				clusterv1.MachineControlPlaneLabel,
				clusterv1.MachineControlPlaneNameLabel))
		}
		return taken
	})
	for _, slot := range slots {
		if templateOf(s, slot) == nil {
			ref := facts.MachineTemplate(s.ControlPlane, slot.Arbiter).Spec.InfrastructureRef
			s.Block(
				controlplanev1.InfraTemplateMissingReason,
				fmt.Sprintf("%s %s does not exist: create it, or name another in %s.spec.infrastructureRef", ref.Kind, ref.Name, templateField(slot)),
			)
			return nil
		}
	}
	return slots
}

// templateOf returns the template of the infra machine of a slot; nil if it does not exist.
func templateOf(s *scope.Scope, slot desired.Slot) *unstructured.Unstructured {
	return s.Templates[facts.MachineTemplate(s.ControlPlane, slot.Arbiter).Spec.InfrastructureRef]
}

// templateField returns the field of the spec with the template of the Machine of a slot.
func templateField(slot desired.Slot) string {
	if slot.Arbiter {
		return "arbiter.machineTemplate"
	}
	return "machineTemplate"
}

// creationBlocker returns what blocks the missing Machines of a cluster whose installation has begun.
func creationBlocker(phase controlplanev1.InstallationPhase) string {
	switch phase {
	case controlplanev1.InstallationFailed:
		return "the installation failed, so no further Machines are created; see the condition Installed"
	case controlplanev1.InstallationInstalled:
		return "the missing Machines are created when assisted-service reports that the cluster accepts hosts"
	}
	return "the missing Machines are created when the cluster is installed"
}

// create creates Machines with names that depend on the control plane alone. Therefore neither a stale cache
// nor a restart can lead to a surplus Machine.
func (c *Creator) create(ctx context.Context, s *scope.Scope, slots []desired.Slot) error {
	var errs []error
	created := 0
	for _, slot := range slots {
		request := "creation of Machine " + slot.Name
		done, err := c.createOne(ctx, s, slot)
		if kube.IsRefused(err) { // the other hosts are not changed: without this one they would wait
			c.writer.Refused(s, request)
			s.Block(refusal(err, fmt.Sprintf("Machine %s was refused, correct %s: %v", slot.Name, templateField(slot), err)))
			break
		}
		switch {
		case errors.Is(err, writer.ErrNotCached):
			waitForCache(s, slot.Name, reconcile.CacheLag)
		case err != nil:
			errs = append(errs, fmt.Errorf("cannot create Machine %s: %w", slot.Name, err))
		}
		if done {
			c.writer.Accepted(s, request)
			created++
		}
	}
	if created > 0 {
		s.Found.Event(corev1.EventTypeNormal, "MachinesCreated", "Created %s", english.Plural(created, "control-plane Machine", ""))
	}
	err := errors.Join(errs...)
	c.blockCreation(s, errs...)
	return err
}

// blockCreation reports why a Machine, or an object of it, cannot be created. This is a failure unless all
// reasons are transient and recent. A call without errors ends the period of failures.
func (c *Creator) blockCreation(s *scope.Scope, errs ...error) {
	key := reconcile.Key("creation", s.Stored)
	if len(errs) == 0 {
		c.Failing.Clear(key)
		return
	}
	reason, message := controlplanev1.MachineCreationFailedReason, errors.Join(errs...).Error()
	if left := kube.TransientPeriod - c.clock.Now().Sub(c.Failing.Since(key)); left > 0 && !slices.ContainsFunc(
		errs, func(err error) bool { return !kube.IsTransient(err) },
	) {
		reason, message = clusterv1.ScalingUpReason, "Machines not created yet: "+message+". The provider retries"
		s.Again.In(left)
	}
	s.Found.Block(tasks.MachineCreation, reason, message)
}

// createOne creates an infra machine, an OpenshiftAssistedConfig and a Machine of one name. created reports
// whether the Machine is new.
func (c *Creator) createOne(ctx context.Context, s *scope.Scope, slot desired.Slot) (created bool, err error) {
	infra, err := desired.InfraMachine(s.Facts, templateOf(s, slot), slot)
	if err != nil {
		return false, err
	}
	observedInfra, err := kube.Read(ctx, c.client, client.ObjectKeyFromObject(infra), kube.EmptyOf(infra))
	if err != nil {
		return false, err
	}
	observedConfig, err := kube.Read(ctx, c.client, client.ObjectKeyFromObject(infra), &bootstrapv1.OpenshiftAssistedConfig{})
	if err != nil {
		return false, err
	}
	observedMachine, err := kube.Read(ctx, c.client, client.ObjectKeyFromObject(infra), &clusterv1.Machine{})
	if err != nil {
		return false, err
	}
	for _, existing := range []client.Object{observedInfra, observedConfig, observedMachine} {
		if kube.IsNil(existing) {
			continue
		}
		if !existing.GetDeletionTimestamp().IsZero() {
			s.Block(describeDeletion(existing, c.clock.Now()))
			s.Again.In(formerObjectsInterval)
			return false, nil
		}
		if workers.OwnedByKind(existing, "Machine") { // the cache still has the object of a former Machine, or does not have the Machine yet
			waitForCache(s, slot.Name, reconcile.CacheLag)
			return false, nil
		}
		if !s.Ours(existing) {
			return false, fmt.Errorf("%s %s exists and was not created for this control plane", kube.KindName(existing), existing.GetName())
		}
	}
	if observedMachine != nil { // ours, and newer than the list of Machines
		waitForCache(s, slot.Name, reconcile.CacheLag)
		return false, nil
	}
	if exists, err := c.createConfig(ctx, s, slot, observedConfig); err != nil || !exists {
		return false, err
	}
	if observedInfra == nil {
		if exists, err := c.createInfraMachine(ctx, s, infra); err != nil || !exists {
			return false, err
		}
	}
	machine := desired.Machine(s.Facts, slot, infra, versioning.MachineVersion(s.Facts, nil))
	if err := c.writer.Apply(ctx, s, machine, nil); err != nil {
		return false, err
	}
	s.Found.Machines = append(s.Found.Machines, machine) // counts from now on, although the cache does not have it
	return machine.UID != "", nil
}

// describeDeletion returns what to report while an object of a former Machine is being deleted. This is a
// failure only after maxDeletionTime.
func describeDeletion(of client.Object, now time.Time) (reason, message string) {
	state := fmt.Sprintf("%s %s of the former Machine is being deleted", kube.KindName(of), of.GetName())
	if now.Sub(of.GetDeletionTimestamp().Time) < maxDeletionTime {
		return clusterv1.ScalingUpReason, "Machine " + of.GetName() + " not created yet: " + state
	}
	return controlplanev1.MachineCreationFailedReason, fmt.Sprintf("Machine %s not created: %s since %s. See its conditions and events, "+
		"and the controllers of its finalizers %s",
		of.GetName(), state, of.GetDeletionTimestamp().UTC().Format(time.RFC3339), bound.List(of.GetFinalizers()))
}

// createConfig creates the OpenshiftAssistedConfig of a slot. It runs before the creation of the infra
// machine, because a bootstrap provider of another version may refuse the config. exists is false if the
// config may be about to be deleted, or may have another role than the slot.
func (c *Creator) createConfig(
	ctx context.Context, s *scope.Scope, slot desired.Slot, observed *bootstrapv1.OpenshiftAssistedConfig,
) (exists bool, err error) {
	config := desired.Config(s.Facts, slot.Name, slot.Arbiter, observed)
	if left := c.writer.Recent.Pending(apply.Key(config), ""); observed == nil && left > 0 {
		waitForCache(s, slot.Name, left)
		return false, nil
	}
	if slot.Arbiter != (config.Spec.Role == bootstrapv1.HostRoleArbiter) {
		s.Block(
			controlplanev1.MachineCreationFailedReason,
			fmt.Sprintf(
				"OpenshiftAssistedConfig %s exists without a Machine, and with the spec.role %q of another place. Delete it; no host is wiped, as "+
					"no Machine uses it",
				config.Name,
				config.Spec.Role,
			),
		)
		s.Again.In(formerObjectsInterval)
		return false, nil
	}
	if err := applyConfig(ctx, c.writer, s, config, observed); err != nil {
		return false, err
	}
	if !config.DeletionTimestamp.IsZero() { // the config of a former Machine, which the cache no longer has
		waitForCache(s, slot.Name, reconcile.CacheLag)
		return false, nil
	}
	return true, nil
}

// errBootstrapOutdated reports that the CRD of OpenshiftAssistedConfig, which belongs to the bootstrap
// provider, lacks a field that is set.
var errBootstrapOutdated = errors.New("the bootstrap provider is older than the control plane provider")

func applyConfig(ctx context.Context, w *writer.Writer, s *scope.Scope, config, observed *bootstrapv1.OpenshiftAssistedConfig) error {
	err := w.Apply(ctx, s, config, observed)
	if kube.UndeclaredField(err) != "" {
		return fmt.Errorf("%w: %w", errBootstrapOutdated, err)
	}
	return err
}

// refusal returns reason and message for an object of a Machine that the API server refused. The user has to
// correct the spec, unless an upgrade of the bootstrap provider fixes the refusal.
func refusal(err error, correct string) (reason, message string) {
	if errors.Is(err, errBootstrapOutdated) {
		return controlplanev1.BootstrapProviderOutdatedReason, fmt.Sprintf("%v: its OpenshiftAssistedConfigs have no %s. Upgrade it, as "+
			"clusterctl upgrade does; the upgrade is noticed within ten minutes",
			errBootstrapOutdated, kube.UndeclaredField(err))
	}
	return controlplanev1.InvalidConfigurationReason, correct
}

// waitForCache reports that the creation of a Machine waits until the cache shows which of its objects exist.
func waitForCache(s *scope.Scope, name string, left time.Duration) {
	if s.Found.Blocked(tasks.Installation) == nil {
		s.Block(clusterv1.ScalingUpReason, "creating Machine "+name)
	}
	s.Again.In(left)
}

// createInfraMachine creates the infra machine. It does not use server-side apply, which would make this
// provider the owner of the spec. The bootstrap provider changes its boot image, and the infrastructure
// provider its providerID. exists is false if the infra machine may be deleted: the cache may lack it, or it
// may belong to a former Machine.
func (c *Creator) createInfraMachine(ctx context.Context, s *scope.Scope, infra *unstructured.Unstructured) (exists bool, err error) {
	key := reconcile.Key(infra.GetKind(), infra)
	if left := c.writer.Recent.Pending(key, ""); left > 0 {
		waitForCache(s, infra.GetName(), left)
		return false, nil
	}
	switch err := c.client.Create(ctx, infra, writer.FieldOwner); {
	case apierrors.IsAlreadyExists(err):
		waitForCache(s, infra.GetName(), reconcile.CacheLag)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot create %s %s: %w", infra.GetKind(), infra.GetName(), err)
	}
	c.writer.Recent.Record(key, "")
	return true, nil
}
