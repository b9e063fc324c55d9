package assistedsim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	dns "k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	agentFinalizer = "agent.agent-install.openshift.io/ai-deprovision"
	// With the annotation skipSpokeCleanup on an Agent, the service leaves the removal of its Node to other
	// controllers (agent_controller.go: AgentSkipSpokeCleanupAnnotation).
	skipSpokeCleanup = "agent.agent-install.openshift.io/skip-spoke-cleanup"
)

// reconcileAgent applies the Agent's spec to the host, publishes the host's state, and advances the host by one
// step. So every state is published at least once, except states that the host reports faster than the
// simulator writes.
func (s *Simulator) reconcileAgent(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	agent := &Agent{}
	if err := s.live.Get(ctx, req.NamespacedName, agent); err != nil {
		if apierrors.IsNotFound(err) {
			s.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("cannot read Agent: %w", err)
	}
	if !agent.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, s.releaseAgent(ctx, agent)
	}
	found := s.readFencing(ctx, agent)
	for {
		view, ok := s.viewHost(agent, found)
		if !ok {
			return ctrl.Result{}, nil // not registered with this service
		}
		if !s.notified(agent, view) {
			return ctrl.Result{}, nil
		}
		if err := s.publishAgent(ctx, agent, view); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		if view.deprovision != nil && view.unbound() {
			s.removeFormerNode(ctx, agent, view)
		}
		again, wait := s.advanceHost(view)
		if again {
			continue
		}
		if !view.joining() {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		if further, err := s.followNode(ctx, agent, view); err != nil || !further {
			if err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "cannot follow the node of a host")
			}
			return ctrl.Result{RequeueAfter: s.opts.NodePoll}, nil
		}
	}
}

// viewHost applies the spec and returns a copy of the record to publish.
func (s *Simulator) viewHost(agent *Agent, found fencing) (*host, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[client.ObjectKeyFromObject(agent)]
	if h == nil {
		return nil, false
	}
	before := *h
	h.fencing = found
	h.specError = s.applySpec(h, &agent.Spec)
	if h.infraEnv.autoApprove && !controllerutil.ContainsFinalizer(agent, agentFinalizer) {
		h.approved = true // approved once, when the host is first reconciled
	}
	if h.approved != before.approved || h.state != before.state || h.role != before.role ||
		(h.specError == nil) != (before.specError == nil) {
		s.touchHost(h)
	}
	view := *h
	return &view, true
}

// advanceHost advances the host by one step, unless the host changed since viewHost.
func (s *Simulator) advanceHost(view *host) (again bool, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[view.key]
	if h == nil {
		return false, 0
	}
	if h.published != view.state || h.shown != view.reports {
		h.published, h.shown = view.state, view.reports
		s.notify()
	}
	if h.state != view.state || h.stage != view.stage {
		return true, 0
	}
	return s.stepHost(h)
}

// applySpec applies an Agent's spec as the service does. Called with mu held.
func (s *Simulator) applySpec(h *host, spec *AgentSpec) error {
	h.approved, h.wanted = spec.Approved, types.NamespacedName{}
	if ref := spec.ClusterDeploymentName; ref != nil {
		h.wanted = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	}
	if err := s.applyCluster(h); err != nil {
		return err
	}
	if !h.listens() {
		if installing(h.state) && (spec.InstallerArgs != h.requested.installerArgs ||
			spec.IgnitionConfigOverrides != h.requested.ignitionOverrides) {
			return inputErrorf("host %s is in state %s, which does not allow to change its installation", h.key.Name, h.state)
		}
		return nil
	}
	if err := s.applyFencing(h); err != nil {
		return err
	}
	return applyRequests(h, spec)
}

// applyRequests never clears hostname, role or disk: to the service, "" means no change.
func applyRequests(h *host, spec *AgentSpec) error {
	switch spec.Role {
	case "":
	case models.HostRoleMaster, models.HostRoleArbiter, models.HostRoleWorker, models.HostRoleAutoAssign:
		if h.requested.role != spec.Role {
			h.requested.role, h.role = spec.Role, spec.Role
		}
	default:
		return inputErrorf("role %q is none of auto-assign, master, arbiter, worker", spec.Role)
	}
	if spec.Hostname != "" {
		if problems := dns.IsDNS1123Subdomain(spec.Hostname); len(problems) > 0 || spec.Hostname == "localhost" {
			return inputErrorf("Hostname does not pass required regex validation: %s", spec.Hostname)
		}
		h.requested.hostname = spec.Hostname
	}
	if id := spec.InstallationDiskID; id != "" && h.inventory != nil {
		if !hasDisk(h.inventory, id) {
			return inputErrorf("Requested installation disk is not part of the host's valid disks: %s", id)
		}
		h.requested.diskID = id
	}
	if spec.InstallerArgs != "" && json.Unmarshal([]byte(spec.InstallerArgs), new([]string)) != nil {
		return inputErrorf("installerArgs is not a JSON array of strings")
	}
	if spec.IgnitionConfigOverrides != "" && !json.Valid([]byte(spec.IgnitionConfigOverrides)) {
		return inputErrorf("error parsing ignition: config is not valid")
	}
	h.requested.nodeLabels = maps.Clone(spec.NodeLabels)
	h.requested.installerArgs, h.requested.ignitionOverrides = spec.InstallerArgs, spec.IgnitionConfigOverrides
	return nil
}

func hasDisk(inventory *models.Inventory, id string) bool {
	for _, disk := range inventory.Disks {
		if disk.ID == id && disk.InstallationEligibility.Eligible {
			return true
		}
	}
	return false
}

// applyCluster binds and unbinds the host. Both complete only when the host registers again.
func (s *Simulator) applyCluster(h *host) error {
	switch {
	case h.wanted == h.cluster:
		return nil
	case h.infraEnv.clusterRef != (types.NamespacedName{}):
		return inputErrorf("Cannot bind or unbind Agent %s: its InfraEnv %s is bound to a cluster", h.key.Name, h.infraEnv.key.Name)
	case !h.bound() && h.unbound():
		c := s.clusters[h.wanted]
		if c == nil {
			return inputErrorf("failed to get clusterDeployment with name %s in namespace %s", h.wanted.Name, h.wanted.Namespace)
		}
		if !c.acceptsHosts() {
			return inputErrorf("Cannot bind host %s to cluster %s: the cluster is in state %s", h.key.Name, c.key, c.state)
		}
		h.cluster = h.wanted
		h.enter(models.HostStatusBinding, infoHostBinding, s.opts.StageDelay)
		return nil
	case h.state == models.HostStatusBinding || h.state == models.HostStatusUnbinding ||
		h.state == models.HostStatusUnbindingPendingUserAction:
		return nil // waits for the host
	case installing(h.state):
		return inputErrorf("Cannot unbind host %s: it is in state %s", h.key.Name, h.state)
	}
	s.unbind(h)
	return nil
}

// unbind removes the host from its cluster. A host whose installation began may run the installed system, which
// has no agent. Such a host waits until it boots the discovery image again. If it still runs the discovery
// image, it waits for its next poll.
func (s *Simulator) unbind(h *host) {
	former := h.cluster
	defer s.touchCluster(former)
	defer func() { h.cluster = types.NamespacedName{} }()
	switch h.state {
	case models.HostStatusInstalled, models.HostStatusAddedToExistingCluster, models.HostStatusError, models.HostStatusCancelled:
		h.deprovision = &AgentDeprovisionInfo{
			ClusterName: h.cluster.Name, ClusterNamespace: h.cluster.Namespace, NodeName: h.hostname(),
		}
		h.enter(models.HostStatusUnbindingPendingUserAction, infoHostUnbinding, 0)
	default:
		h.enter(models.HostStatusUnbinding, infoHostUnbinding, 0)
	}
}

// forget drops the host of a deleted Agent. A host that still runs the discovery image registers again.
func (s *Simulator) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[key]
	if h == nil || h.forgotten {
		s.notify()
		return
	}
	delete(s.hosts, key)
	s.touchCluster(h.cluster)
	enqueue(s.infraEnvQueue, h.infraEnv.key)
}

// releaseAgent removes the Node of an installed host from its cluster and then the finalizer of the deleted
// Agent. With skipSpokeCleanup the Node stays.
func (s *Simulator) releaseAgent(ctx context.Context, agent *Agent) error {
	if !controllerutil.ContainsFinalizer(agent, agentFinalizer) {
		return nil
	}
	key := client.ObjectKeyFromObject(agent)
	s.mu.Lock()
	var view *host
	if h := s.hosts[key]; h != nil {
		view = new(host)
		*view = *h
	}
	s.mu.Unlock()
	if view != nil && view.stage == models.HostStageDone && !skipsSpoke(agent) && s.cleansSpoke(ctx, view) {
		if err := s.removeNode(ctx, view.cluster, view.hostname()); err != nil {
			view.cleanup = err.Error()
			return errors.Join(err, client.IgnoreNotFound(s.publishAgent(ctx, agent, view)))
		}
	}
	base := agent.DeepCopy()
	controllerutil.RemoveFinalizer(agent, agentFinalizer)
	if err := s.client.Patch(ctx, agent, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot release Agent: %w", err)
	}
	s.forget(key)
	return nil
}

func skipsSpoke(agent *Agent) bool {
	_, skips := agent.Annotations[skipSpokeCleanup]
	return skips
}

// cleansSpoke reports whether neither the host's cluster nor its InfraEnv is being deleted; otherwise the
// service removes no Node.
func (s *Simulator) cleansSpoke(ctx context.Context, h *host) bool {
	s.mu.Lock()
	alive := h.bound() && s.infraEnvs[h.infraEnv.key] == h.infraEnv
	s.mu.Unlock()
	return alive && s.clusterAlive(ctx, h.cluster)
}

func (s *Simulator) clusterAlive(ctx context.Context, key types.NamespacedName) bool {
	cd := &hivev1.ClusterDeployment{}
	return s.live.Get(ctx, key, cd) == nil && cd.DeletionTimestamp.IsZero()
}

// removeFormerNode tries once to remove the Node of a host that registers again after it was unbound. A cluster
// that does not answer then no longer blocks the host.
func (s *Simulator) removeFormerNode(ctx context.Context, agent *Agent, view *host) {
	former := types.NamespacedName{Namespace: view.deprovision.ClusterNamespace, Name: view.deprovision.ClusterName}
	message := ""
	if !skipsSpoke(agent) && s.clusterAlive(ctx, former) {
		if err := s.removeNode(ctx, former, view.deprovision.NodeName); err != nil {
			message = err.Error()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[view.key]; h != nil {
		h.deprovision, h.cleanup = nil, message
		s.touchHost(h)
	}
}
