// Package deletion releases the host of a Machine that is being deleted.
package deletion

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/labels/format"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/claims"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Releaser deletes Agents and InfraEnvs.
type Releaser struct {
	client client.Client
	live   client.Reader
	writer *writer.Writer
	claims *claims.Checker
	clock  clock.PassiveClock
	// forget drops what the process has recorded about a config.
	forget func(config types.NamespacedName)
}

// New returns a Releaser. forget is called when the finalizer of a config was removed.
func New(w *writer.Writer, c *claims.Checker, clk clock.PassiveClock, forget func(types.NamespacedName)) *Releaser {
	return &Releaser{client: w.Client, live: w.Live, writer: w, claims: c, clock: clk, forget: forget}
}

// KeepInUse releases an object that clusterctl moved to another management cluster, where the host stays in
// use. It also keeps the host of a Machine that is not being deleted, or whose deletion a pre-terminate hook
// blocks.
func (d *Releaser) KeepInUse(ctx context.Context, s *scope.Scope) (bool, error) {
	if !controllerutil.ContainsFinalizer(s.Stored, bootstrapv1.OpenshiftAssistedConfigFinalizer) {
		return false, nil
	}
	if _, moved := s.Config.Annotations[clusterctlv1.DeleteForMoveAnnotation]; moved {
		_, err := d.RemoveFinalizer(ctx, s)
		return false, err
	}
	if s.Machine == nil || s.ClusterDeleting() {
		return true, nil
	}
	if s.Machine.DeletionTimestamp.IsZero() {
		return s.Blockf(bootstrapv1.DeletingCondition, bootstrapv1.WaitingForMachineReason,
			"this object was deleted while Machine %s uses it. The host keeps running and is not touched. The object is deleted together with "+
				"the Machine, which wipes the host", s.Machine.Name), nil
	}
	if hooks := contract.PreTerminateHooks(s.Machine); len(hooks) > 0 {
		return s.Blockf(bootstrapv1.DeletingCondition, bootstrapv1.WaitingForMachineReason,
			"Machine %s is being deleted, but its host is kept until %s is removed: see its condition Deleting",
			s.Machine.Name, bound.List(hooks)), nil
	}
	return true, nil
}

// DeleteBoundAgents deletes the bound Agents and waits. assisted-service then removes the Node from the cluster, and
// does not delete an InfraEnv before. If the whole cluster is being deleted, no Node has to be removed.
func (d *Releaser) DeleteBoundAgents(ctx context.Context, s *scope.Scope) (bool, error) {
	var waiting []string
	var since time.Time
	for _, agent := range s.Agents {
		if !facts.Bound(agent) || s.BoundElsewhere(agent) {
			// Deleted after its InfraEnv: a host that still runs the discovery agent would register again.
			continue
		}
		switch claimants, err := d.claims.RecordedOn(ctx, s, agent.Name); {
		case err != nil:
			return false, err
		case len(claimants) > 0:
			continue // KeepForeignAgents waits for the end of the claims
		}
		if s.ClusterDeleting() || !s.MayHaveNode(agent) {
			var err error
			if agent, err = d.SkipSpokeCleanup(ctx, agent); err != nil {
				return false, err
			}
		}
		if err := kube.Delete(ctx, d.client, agent); err != nil {
			return false, err
		}
		text := describeReleased(s, agent)
		if cleanup := assisted.AgentCondition(agent, aiv1beta1.CleanupCondition); cleanup.Status == corev1.ConditionFalse {
			text += " (" + assisted.RedactURLs(cleanup.Message) + ")"
			since = d.clock.Now() // assisted-service responds
		}
		since = slices.MaxFunc([]time.Time{since, scope.DeletedAt(agent)}, time.Time.Compare)
		waiting = append(waiting, text)
	}
	if len(waiting) > 0 {
		s.Blockf(bootstrapv1.DeletingCondition, bootstrapv1.DeletingAgentReason,
			"waiting for assisted-service to remove the host from the cluster and to delete %s", bound.List(waiting))
		return s.Overdue(bootstrapv1.DeletingCondition, d.clock.Now(), since), nil
	}
	return true, nil
}

// describeReleased names the host of the identified Agent. Another Agent may run on another server.
func describeReleased(s *scope.Scope, agent *aiv1beta1.Agent) string {
	if s.IsRecorded(agent) {
		return s.DescribeAgent(agent)
	}
	return "Agent " + agent.Name
}

// KeepForeignAgents waits while a host belongs to another cluster, to which another client bound its Agent. When
// the Agent or its InfraEnv is deleted, assisted-service would remove the Node from that cluster.
//
// An Agent without a cluster may be that of a server on which another config has installed. If such a server boots
// the image of an InfraEnv, assisted-service moves the Agent to that InfraEnv, with an empty spec. The claim of a
// config ends with its Machine, also while both configs are being deleted. The claim also ends with the deletion
// of the Cluster that both configs belong to. So no two deletions wait for each other.
func (d *Releaser) KeepForeignAgents(ctx context.Context, s *scope.Scope) (bool, error) {
	for _, agent := range s.Agents {
		if s.BoundElsewhere(agent) {
			return s.Blockf(bootstrapv1.DeletingCondition, bootstrapv1.HostInAnotherClusterReason,
				"Agent %s belongs to %s. Agent and InfraEnv %s are kept until the Agent no longer belongs to that cluster. Do not unbind or delete it "+
					"if that cluster uses its server, which would be removed from the cluster and reinstalled",
				agent.Name, s.ClusterOf(agent), facts.InfraEnvOf(agent)), nil
		}
	}
	recorded, err := d.claims.RecordedBy(ctx, s, s.Agents)
	if err != nil || len(recorded) == 0 {
		return err == nil, err
	}
	return s.Blockf(bootstrapv1.DeletingCondition, bootstrapv1.ServerInUseReason,
		"Agent and InfraEnv are kept: %s. Start the server from its disk. %s. That config loses its Agent. Do not delete the Machine of that "+
			"config to end the wait: that wipes its host",
		recorded[0], deletionOfClaimed(s.Agents)), nil
}

// deletionOfClaimed advises how to delete the Agents that another config recorded. assisted-service removes the
// Node of a deleted bound Agent from its cluster, unless the Agent is annotated. That Node would be the Node of
// the other Machine.
func deletionOfClaimed(agents []*aiv1beta1.Agent) string {
	i := slices.IndexFunc(agents, facts.Bound)
	if i < 0 {
		return "Then delete the Agent, which wipes nothing"
	}
	return fmt.Sprintf("Annotate Agent %s, which is bound to ClusterDeployment %s, with %s=true, then delete the Agent, which wipes nothing. "+
		"Without the annotation assisted-service removes the Node of the server from the cluster",
		agents[i].Name, agents[i].Spec.ClusterDeploymentName.Name, assisted.SkipSpokeCleanupAnnotation)
}

// DeleteInfraEnv deletes the InfraEnv. A host that still runs the discovery agent then cannot register again.
func (d *Releaser) DeleteInfraEnv(ctx context.Context, s *scope.Scope) (bool, error) {
	for _, infraEnv := range s.InfraEnvs {
		if err := kube.Delete(ctx, d.client, infraEnv); err != nil {
			return false, err
		}
		d.writer.Created.Forget(s.Key())
	}
	if len(s.InfraEnvs) > 0 {
		s.Blockf(bootstrapv1.DeletingCondition, bootstrapv1.DeletingInfraEnvReason, "waiting for assisted-service to delete InfraEnv %s",
			s.InfraEnvs[0].Name)
		return s.Overdue(bootstrapv1.DeletingCondition, d.clock.Now(), scope.DeletedAt(s.InfraEnvs[0])), nil
	}
	return true, nil
}

// DeleteLeftAgents deletes the Agents that do not belong to the cluster and were not deleted with their InfraEnv.
func (d *Releaser) DeleteLeftAgents(ctx context.Context, s *scope.Scope) (bool, error) {
	var waiting []string
	var since time.Time
	for _, agent := range s.Agents {
		waiting = append(waiting, describeReleased(s, agent))
		since = slices.MaxFunc([]time.Time{since, scope.DeletedAt(agent)}, time.Time.Compare)
		if err := kube.Delete(ctx, d.client, agent); err != nil {
			return false, err
		}
	}
	if len(waiting) > 0 {
		s.Blockf(bootstrapv1.DeletingCondition, bootstrapv1.DeletingAgentReason, "waiting for assisted-service to delete %s",
			bound.List(waiting))
		return s.Overdue(bootstrapv1.DeletingCondition, d.clock.Now(), since), nil
	}
	return true, nil
}

// ConfirmDeleted returns true once the API server has no InfraEnv of the config. The cache may lack an InfraEnv
// that was created a moment ago, and no controller would delete it later.
func (d *Releaser) ConfirmDeleted(ctx context.Context, s *scope.Scope) (bool, error) {
	list := &aiv1beta1.InfraEnvList{}
	ours := client.MatchingLabels{bootstrapv1.ConfigNameLabel: format.MustFormatValue(s.Config.Name)}
	if err := d.live.List(ctx, list, client.InNamespace(s.Config.Namespace), ours); err != nil {
		return false, fmt.Errorf("cannot look for InfraEnvs: %w", err)
	}
	s.InfraEnvs = nil
	for i := range list.Items {
		if infraEnv := &list.Items[i]; ownership.ForeignInfraEnv(s.Facts, infraEnv, writer.Wrote(infraEnv)) == "" {
			s.InfraEnvs = append(s.InfraEnvs, infraEnv)
		}
	}
	if len(s.InfraEnvs) == 0 {
		return true, nil
	}
	// No event reports the deletion before the cache shows the creation.
	s.Again.In(reconcile.CacheLag)
	there, err := kube.Exists(ctx, d.live, s.Stored, &bootstrapv1.OpenshiftAssistedConfig{})
	if err != nil {
		return false, err
	}
	// The config is deleted, and the InfraEnv belongs to another config of this name.
	if !there {
		controllerutil.RemoveFinalizer(s.Stored, bootstrapv1.OpenshiftAssistedConfigFinalizer)
		return false, nil
	}
	return d.DeleteInfraEnv(ctx, s)
}

// SkipSpokeCleanup annotates an Agent whose cluster has no Node to remove. Without the annotation,
// assisted-service would search for a Node in a cluster that it cannot reach. It would delete the Agent only once
// that cluster is reachable. SkipSpokeCleanup returns the annotated Agent.
func (d *Releaser) SkipSpokeCleanup(ctx context.Context, agent *aiv1beta1.Agent) (*aiv1beta1.Agent, error) {
	if metav1.HasAnnotation(agent.ObjectMeta, assisted.SkipSpokeCleanupAnnotation) {
		return agent, nil
	}
	annotated := agent.DeepCopy() // an Agent that was created again under the same name may get a Node
	skip := map[string]*string{assisted.SkipSpokeCleanupAnnotation: ptr.To("")}
	return annotated, kube.Annotate(ctx, d.client, annotated, skip, writer.FieldOwner)
}

// RemoveFinalizer lets the API server delete the config, and drops what the process has recorded about it.
func (d *Releaser) RemoveFinalizer(ctx context.Context, s *scope.Scope) (bool, error) {
	if err := d.writer.PatchFinalizers(ctx, s, controllerutil.RemoveFinalizer); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot remove the finalizer: %w", err)
	}
	controllerutil.RemoveFinalizer(s.Stored, bootstrapv1.OpenshiftAssistedConfigFinalizer)
	d.forget(s.Key())
	return true, nil
}
