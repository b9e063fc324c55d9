package assistedsim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openshift/assisted-service/models"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

// Image implements [hosts.Service]. The image service accepts any token of the simulator.
func (s *Simulator) Image(_ context.Context, infraEnvID, token string) ([]byte, error) {
	if s.returned() != nil {
		return nil, errAway
	}
	if s.opts.Auth == AuthLocal && !s.tokens.Valid(token) {
		return nil, fmt.Errorf("the token of the image is not valid: %w", hosts.ErrNotFound)
	}
	s.mu.Lock()
	env := s.infraEnvByID(infraEnvID)
	if env == nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("no InfraEnv %s: %w", infraEnvID, hosts.ErrNotFound)
	}
	record := *env
	s.mu.Unlock()
	return s.discoveryIgnition(&record)
}

// trusted checks the token of an agent, or of a controller in a cluster.
func (s *Simulator) trusted(config hosts.AgentConfig) error {
	if s.opts.Auth == AuthLocal && !s.tokens.Valid(config.Token) {
		return fmt.Errorf("the token of the agent is not valid: %w", hosts.ErrNotFound)
	}
	return nil
}

// Register implements [hosts.Service]. Like the real service it creates the Agent before it responds.
func (s *Simulator) Register(ctx context.Context, guest hosts.Agent) error {
	if err := s.trusted(guest.AgentConfig); err != nil {
		return err
	}
	for {
		if s.returned() != nil {
			return errAway
		}
		s.mu.Lock()
		env := s.infraEnvByID(guest.InfraEnvID)
		if env == nil {
			s.mu.Unlock()
			return fmt.Errorf("cannot register host %s in InfraEnv %s: %w", guest.HostID, guest.InfraEnvID, hosts.ErrNotFound)
		}
		key := types.NamespacedName{Namespace: env.key.Namespace, Name: guest.HostID}
		if h := s.hosts[key]; h != nil && h.infraEnv == env && !h.forgotten {
			defer s.mu.Unlock()
			return s.reregister(h, guest)
		}
		if err := s.refuseRegistration(env); err != nil {
			s.mu.Unlock()
			return err
		}
		agent, changed := newAgent(env, guest.HostID), s.changed
		s.mu.Unlock()

		found, err := s.createAgent(ctx, agent)
		if err != nil {
			return err
		}
		if found != agentDeleting {
			return s.admit(env, key, guest, found == agentDropped)
		}
		select { // the previous Agent of the host is being deleted: the host retries
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (s *Simulator) infraEnvByID(id string) *infraEnv {
	for _, env := range s.infraEnvs {
		if env.id == id {
			return env
		}
	}
	return nil
}

// refuseRegistration returns the service's error (409) for a new host of a bound InfraEnv whose cluster accepts
// no hosts.
func (s *Simulator) refuseRegistration(env *infraEnv) error {
	if env.clusterRef == (types.NamespacedName{}) {
		return nil
	}
	c := s.clusters[env.clusterRef]
	if c == nil {
		return fmt.Errorf("cluster %s does not exist: %w", env.clusterRef, hosts.ErrNotFound)
	}
	if !c.acceptsHosts() {
		return fmt.Errorf("host can register only in one of the following states: insufficient, ready, pending-for-input, "+
			"adding-hosts; cluster %s is in state %s", env.clusterRef, c.state)
	}
	return nil
}

func newAgent(env *infraEnv, hostID string) *Agent {
	agent := &Agent{ObjectMeta: metav1.ObjectMeta{Namespace: env.key.Namespace, Name: hostID}}
	agent.Labels = map[string]string{aiv1beta1.InfraEnvNameLabel: env.key.Name}
	for k, v := range env.agentLabels {
		agent.Labels[k] = v
	}
	if env.clusterRef != (types.NamespacedName{}) {
		agent.Spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: env.clusterRef.Namespace, Name: env.clusterRef.Name}
	}
	return agent
}

// registration is the result of creating the Agent of a registering host.
type registration int

const (
	// agentExists: the Agent was created, existed already, or was moved from another InfraEnv.
	agentExists registration = iota
	// agentDeleting: the previous Agent of the host, with the same name, is being deleted.
	agentDeleting
	// agentDropped: the previous Agent was being deleted and the service released it, although it could not
	// remove its Node. The service creates no new Agent.
	agentDropped
)

// createAgent creates the Agent, or resets the Agent that the host had in another InfraEnv.
//
// The service releases each Agent that is being deleted (crd_utils.go: CreateAgentCR). The simulator releases
// only Agents that their cluster blocks. A real deletion takes less time than a server boot, and simulated
// hosts boot at once, so they should not see the difference.
func (s *Simulator) createAgent(ctx context.Context, agent *Agent) (registration, error) {
	err := s.client.Create(ctx, agent)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return 0, fmt.Errorf("cannot create Agent %s/%s: %w", agent.Namespace, agent.Name, err)
		}
		return agentExists, nil
	}
	existing := &Agent{}
	if err := s.live.Get(ctx, client.ObjectKeyFromObject(agent), existing); err != nil {
		if apierrors.IsNotFound(err) {
			return s.createAgent(ctx, agent)
		}
		return 0, fmt.Errorf("cannot read Agent %s/%s: %w", agent.Namespace, agent.Name, err)
	}
	base := existing.DeepCopy()
	switch {
	case existing.Labels[aiv1beta1.InfraEnvNameLabel] == agent.Labels[aiv1beta1.InfraEnvNameLabel]:
		if existing.DeletionTimestamp.IsZero() {
			return agentExists, nil
		}
		return agentDeleting, nil
	case existing.DeletionTimestamp.IsZero():
		existing.Labels, existing.OwnerReferences, existing.Spec = agent.Labels, nil, agent.Spec
		if err := s.client.Patch(ctx, existing, client.MergeFrom(base)); err != nil {
			return 0, fmt.Errorf("cannot move Agent %s/%s to another InfraEnv: %w", agent.Namespace, agent.Name, err)
		}
		return agentExists, nil
	case conditionsv1.IsStatusConditionFalse(existing.Status.Conditions, aiv1beta1.CleanupCondition):
		existing.Finalizers = nil
		if err := s.client.Patch(ctx, existing, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("cannot drop Agent %s/%s: %w", agent.Namespace, agent.Name, err)
		}
		return agentDropped, nil
	}
	return agentDeleting, nil
}

// admit records a host whose Agent exists, or a forgotten host.
func (s *Simulator) admit(env *infraEnv, key types.NamespacedName, guest hosts.Agent, forgotten bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.infraEnvs[env.key] != env {
		return fmt.Errorf("cannot register host %s: %w", key.Name, hosts.ErrNotFound)
	}
	if h := s.hosts[key]; h != nil && h.infraEnv == env && !h.forgotten {
		return s.reregister(h, guest)
	}
	h := &host{
		key: key, infraEnv: env, forgotten: forgotten, kind: models.HostKindHost, role: models.HostRoleAutoAssign,
		arrived: guest.Inventory, cannotPull: guest.CannotPull,
	}
	if c := s.clusters[env.clusterRef]; c != nil {
		s.join(h, c)
	}
	s.hosts[key] = h
	s.discover(h)
	s.touchHost(h)
	return nil
}

// join adds the host to the cluster, as a day-2 host if the cluster is installed.
func (s *Simulator) join(h *host, c *cluster) {
	h.cluster = c.key
	if c.state == models.ClusterStatusAddingHosts {
		h.kind = models.HostKindAddToExistingClusterHost
		if h.role == models.HostRoleAutoAssign {
			h.role = models.HostRoleWorker
		}
	}
}

// joinWanted completes the binding of a host.
func (s *Simulator) joinWanted(h *host) {
	if c := s.clusters[h.cluster]; c != nil {
		s.join(h, c)
	}
}

// discover resets a host that booted the discovery image to the first state.
func (s *Simulator) discover(h *host) {
	h.backendError, h.stage, h.stageInfo, h.stages, h.bootstrap = false, "", "", nil, false
	h.handedOver, h.stopped = false, false
	state := models.HostStatusDiscoveringUnbound
	if h.bound() {
		state = models.HostStatusDiscovering
	}
	h.enter(state, "Waiting for host to send hardware details", s.opts.StageDelay)
}

// reregister handles a known host that registers with the discovery system. Called with mu held.
func (s *Simulator) reregister(h *host, guest hosts.Agent) error {
	rebooting := h.stage == models.HostStageRebooting || h.dayTwo() && h.stage == models.HostStageDone
	switch h.state {
	case models.HostStatusInstalling, models.HostStatusInstallingInProgress, models.HostStatusAddedToExistingCluster:
		if rebooting {
			h.enter(models.HostStatusInstallingPendingUserAction, "Expected the host to boot from disk, but it booted the "+
				"installation image - please reboot and fix boot order to boot from disk", 0)
		} else {
			h.enter(models.HostStatusError, "The host unexpectedly restarted during the installation", 0)
		}
	case models.HostStatusInstallingPendingUserAction:
		return fmt.Errorf("host is required to be booted from disk %s", h.installationDisk())
	case models.HostStatusInstalled:
		return errors.New("host is trying to register after the cluster has already been installed")
	case models.HostStatusPreparingFailed, models.HostStatusCancelled:
		return fmt.Errorf("host %s is in state %s, in which it cannot register", h.key.Name, h.state)
	case models.HostStatusError:
		return nil // keeps its state
	default:
		if h.state == models.HostStatusBinding {
			s.joinWanted(h)
		}
		if h.state == models.HostStatusUnbinding || h.state == models.HostStatusUnbindingPendingUserAction {
			s.leave(h)
		}
		h.arrived, h.cannotPull = guest.Inventory, guest.CannotPull
		s.discover(h)
	}
	s.touchHost(h)
	return nil
}

// leave removes the host from its cluster: role, kind and disk are cleared, and the Agent's spec stays.
func (s *Simulator) leave(h *host) {
	h.kind, h.role = models.HostKindHost, models.HostRoleAutoAssign
	h.requested, h.validation, h.failing = requests{}, validationUnknown, ""
}

// Next implements [hosts.Service].
func (s *Simulator) Next(ctx context.Context, guest hosts.Agent) (hosts.Instruction, error) {
	if err := s.trusted(guest.AgentConfig); err != nil {
		return hosts.Instruction{}, err
	}
	for {
		if s.returned() != nil {
			return hosts.Instruction{}, errAway
		}
		s.mu.Lock()
		h := s.hostOf(guest.InfraEnvID, guest.HostID)
		if h == nil {
			s.mu.Unlock()
			return hosts.Instruction{}, fmt.Errorf("no host %s in InfraEnv %s: %w", guest.HostID, guest.InfraEnvID, hosts.ErrNotFound)
		}
		instruction, ok := s.instruction(h)
		changed := s.changed
		s.mu.Unlock()
		if ok {
			return instruction, nil
		}
		select {
		case <-ctx.Done():
			return hosts.Instruction{}, ctx.Err()
		case <-changed:
		}
	}
}

func (s *Simulator) hostOf(infraEnvID, hostID string) *host {
	env := s.infraEnvByID(infraEnvID)
	if env == nil {
		return nil
	}
	h := s.hosts[types.NamespacedName{Namespace: env.key.Namespace, Name: hostID}]
	if h == nil || h.infraEnv != env {
		return nil
	}
	return h
}

func (s *Simulator) instruction(h *host) (hosts.Instruction, bool) {
	if h.published != h.state {
		return hosts.Instruction{}, false
	}
	switch h.state {
	case models.HostStatusBinding, models.HostStatusUnbinding, models.HostStatusUnbindingPendingUserAction:
		return hosts.Instruction{Kind: hosts.Exit}, true
	case models.HostStatusError, models.HostStatusCancelled:
		stopped := h.stopped
		h.stopped = true
		return hosts.Instruction{Kind: hosts.Stop}, !stopped
	case models.HostStatusInstalling:
		if h.handedOver {
			return hosts.Instruction{}, false
		}
	default:
		return hosts.Instruction{}, false
	}
	h.handedOver = true
	c := s.clusters[h.cluster]
	return hosts.Instruction{
		Kind:              hosts.Install,
		ClusterNamespace:  h.cluster.Namespace,
		ClusterName:       h.cluster.Name,
		ClusterID:         s.clusterID(h.cluster),
		Hostname:          h.hostname(),
		Role:              h.role,
		Bootstrap:         h.bootstrap,
		SingleNode:        c != nil && c.singleNode() && !h.dayTwo(),
		DayTwo:            h.dayTwo(),
		InstallationDisk:  h.installationDisk(),
		NodeLabels:        h.requested.nodeLabels,
		IgnitionOverrides: h.requested.ignitionOverrides,
		InstallerArgs:     h.requested.installerArgs,
	}, true
}

func (s *Simulator) clusterID(key types.NamespacedName) string {
	if c := s.clusters[key]; c != nil {
		return c.id
	}
	return ""
}

// Progress implements [hosts.Service]. It returns when the Agent shows the stage, so that a fast host skips no
// stage.
func (s *Simulator) Progress(ctx context.Context, report hosts.Report) error {
	if report.ClusterID == "" {
		if err := s.trusted(report.AgentConfig); err != nil {
			return err
		}
	}
	if s.returned() != nil {
		return errAway
	}
	number, err := s.report(report)
	if err != nil {
		return err
	}
	for {
		s.mu.Lock()
		h, changed := s.hostOf(report.InfraEnvID, report.HostID), s.changed
		shown := h != nil && h.shown >= number
		s.mu.Unlock()
		switch {
		case h == nil:
			return fmt.Errorf("no host %s in InfraEnv %s: %w", report.HostID, report.InfraEnvID, hosts.ErrNotFound)
		case shown:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Finalize implements [hosts.Service]: it waits until the cluster accepts the report that its operators are
// available.
func (s *Simulator) Finalize(ctx context.Context, clusterID string) error {
	for {
		if s.returned() != nil {
			return errAway
		}
		s.mu.Lock()
		c, changed := s.clusterByID(clusterID), s.changed
		finished := c == nil || !c.installingNow()
		if c != nil && c.state == models.ClusterStatusFinalizing {
			c.finalized, finished = true, true
			s.touchCluster(c.key)
		}
		s.mu.Unlock()
		switch {
		case c == nil:
			return fmt.Errorf("no cluster %s: %w", clusterID, hosts.ErrNotFound)
		case finished:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (s *Simulator) clusterByID(id string) *cluster {
	for _, c := range s.clusters {
		if c.id == id {
			return c
		}
	}
	return nil
}

// report records a stage and returns its number among the reports of the host.
func (s *Simulator) report(report hosts.Report) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hostOf(report.InfraEnvID, report.HostID)
	if h == nil {
		return 0, fmt.Errorf("no host %s in InfraEnv %s: %w", report.HostID, report.InfraEnvID, hosts.ErrNotFound)
	}
	stage, info := report.Stage, report.Info
	switch h.state {
	case models.HostStatusInstalling, models.HostStatusInstallingInProgress, models.HostStatusInstallingPendingUserAction:
	default:
		return 0, fmt.Errorf("host %s is in state %s, which takes no progress", report.HostID, h.state)
	}
	if reason, ok := s.faults.hostFailure(report.HostID, stage); ok {
		stage, info = models.HostStageFailed, reason
	}
	s.progress(h, stage, info)
	h.reports++
	s.touchHost(h)
	return h.reports, nil
}

func (s *Simulator) progress(h *host, stage models.HostStage, info string) {
	text := string(stage)
	if info != "" {
		text += " - " + info
	}
	if stage == models.HostStageFailed {
		h.enter(models.HostStatusError, text, 0)
		return
	}
	now := time.Now()
	if h.stage != stage {
		h.stageStart = now
	}
	h.stage, h.stageInfo, h.stageUpdated = stage, info, now
	if h.stages == nil {
		c := s.clusters[h.cluster]
		h.stages = stagesOf(h.role, h.bootstrap, c != nil && c.singleNode() && !h.dayTwo())
	}
	switch {
	case stage != models.HostStageDone:
		h.enter(models.HostStatusInstallingInProgress, text, 0)
	case h.dayTwo():
		h.enter(models.HostStatusAddedToExistingCluster, text, 0)
	default:
		h.enter(models.HostStatusInstalled, text, 0)
	}
}
