package assistedsim

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
)

const (
	infoClusterInsufficient   = "Cluster is not ready for install"
	infoClusterReady          = "Cluster ready to be installed"
	infoClusterInput          = "User input required"
	infoClusterPreparing      = "Preparing cluster for installation"
	infoClusterPrepareFailure = "Cluster failed to prepare for installation"
	infoClusterHostStopped    = "At least one host has stopped preparing for installation"
	infoClusterInstalling     = "Installation in progress"
	infoClusterUserAction     = "Cluster has hosts pending user action"
	infoClusterFinalizing     = "Finalizing cluster installation"
	infoClusterInstalled      = "Cluster is installed"
	infoClusterFailed         = "cluster has hosts in error"
	infoClusterCanceled       = "Cluster installation was " + models.ClusterStatusCancelled
)

// transition is the next state of a cluster.
type transition struct {
	state, info string
	// failing is the reason why the cluster is not ready.
	failing string
	// delay is the minimum duration of the new state.
	delay time.Duration
}

// nextClusterState returns the next state of the cluster, or nil if the state does not change. Called with mu
// held.
func (s *Simulator) nextClusterState(c *cluster) *transition {
	to := func(state, info string) *transition {
		return &transition{state: state, info: info, delay: s.opts.StageDelay}
	}
	members := s.members(c.key, false)
	switch c.state {
	case models.ClusterStatusInsufficient, models.ClusterStatusPendingForInput, models.ClusterStatusReady:
		return s.nextWaiting(c, members)
	case models.ClusterStatusPreparingForInstallation:
		return s.nextPreparing(c, members)
	case models.ClusterStatusInstalling, models.ClusterStatusInstallingPendingUserAction:
		switch {
		case anyIn(members, models.HostStatusError):
			return to(models.ClusterStatusError, infoClusterFailed)
		case allIn(members, models.HostStatusInstalled) || enoughInstalled(c, members):
			return to(models.ClusterStatusFinalizing, infoClusterFinalizing)
		case anyIn(members, models.HostStatusInstallingPendingUserAction) != (c.state == models.ClusterStatusInstallingPendingUserAction):
			if c.state == models.ClusterStatusInstalling {
				return to(models.ClusterStatusInstallingPendingUserAction, infoClusterUserAction)
			}
			return to(models.ClusterStatusInstalling, infoClusterInstalling)
		}
	case models.ClusterStatusFinalizing:
		switch {
		case anyIn(members, models.HostStatusError):
			return to(models.ClusterStatusError, infoClusterFailed)
		case !c.operatorsDone:
			if c.finalized {
				return to(models.ClusterStatusFinalizing, infoClusterFinalizing)
			}
		case len(members) == 0 || allIn(members, models.HostStatusInstalled): // hosts that were deleted with their InfraEnv do not block
			return &transition{state: models.ClusterStatusInstalled, info: infoClusterInstalled} // left at once
		}
	case models.ClusterStatusInstalled:
		return &transition{state: models.ClusterStatusAddingHosts, info: infoClusterInstalled}
	}
	return nil
}

func anyIn(members []*host, state string) bool {
	return slices.ContainsFunc(members, func(h *host) bool { return h.state == state })
}

func allIn(members []*host, state string) bool {
	return len(members) > 0 && !slices.ContainsFunc(members, func(h *host) bool { return h.state != state })
}

// enoughInstalled reports whether enough hosts are installed: all masters and the arbiter, if any. Two workers
// suffice if two or more were requested, otherwise any number.
func enoughInstalled(c *cluster, members []*host) bool {
	installed, wanted := countIn(members, models.HostStatusInstalled), c.spec.ProvisionRequirements
	return installed.ControlPlaneAgents >= wanted.ControlPlaneAgents && installed.ArbiterAgents >= min(wanted.ArbiterAgents, 1) &&
		installed.WorkerAgents >= min(wanted.WorkerAgents, 2)
}

// countIn counts the members by role; with states, only members in one of these states.
func countIn(members []*host, states ...string) hiveext.ProvisionRequirements {
	var counted hiveext.ProvisionRequirements
	for _, h := range members {
		switch {
		case len(states) > 0 && !slices.Contains(states, h.state):
		case h.role == models.HostRoleMaster:
			counted.ControlPlaneAgents++
		case h.role == models.HostRoleArbiter:
			counted.ArbiterAgents++
		default:
			counted.WorkerAgents++
		}
	}
	return counted
}

// hostsOf returns the number of requested hosts of a cluster.
func hostsOf(wanted hiveext.ProvisionRequirements) int {
	return wanted.ControlPlaneAgents + wanted.ArbiterAgents + wanted.WorkerAgents
}

// nextWaiting returns the next state before the installation. If all hosts are approved already, the
// installation starts without state ready.
func (s *Simulator) nextWaiting(c *cluster, members []*host) *transition {
	s.assignRoles(c, members)
	if c.info == infoClusterPrepareFailure { // always falls back to insufficient before it tries again
		return &transition{
			state: models.ClusterStatusInsufficient, info: infoClusterInsufficient,
			failing: notReadyHosts, delay: s.opts.StageDelay,
		}
	}
	next := s.readiness(c, members)
	next.delay = s.opts.StageDelay
	if next.state == models.ClusterStatusReady && s.startsBlocked[c.key] == 0 && startAllowed(c, members) {
		return &transition{state: models.ClusterStatusPreparingForInstallation, info: infoClusterPreparing, delay: s.opts.StageDelay}
	}
	if s.opts.Flapping > 0 && len(members) == 0 && hasVIPs(c) {
		next.delay = s.opts.Flapping
		if c.state == models.ClusterStatusInsufficient {
			next.state, next.info = models.ClusterStatusPendingForInput, infoClusterInput
		}
		return next
	}
	if next.state == c.state && next.failing == c.failing {
		return nil
	}
	return next
}

const notReadyHosts = "The cluster has hosts that are not ready to install."

func hasVIPs(c *cluster) bool {
	return len(c.spec.APIVIPs) > 0 && len(c.spec.Networking.MachineNetwork) > 0
}

// readiness returns the result of the cluster's validations.
func (s *Simulator) readiness(c *cluster, members []*host) *transition {
	insufficient := func(failing string) *transition {
		return &transition{state: models.ClusterStatusInsufficient, info: infoClusterInsufficient, failing: failing}
	}
	wanted := c.spec.ProvisionRequirements.ControlPlaneAgents
	if c.platform() == hiveext.BareMetalPlatformType {
		if len(c.spec.APIVIPs) == 0 || len(c.spec.IngressVIPs) == 0 {
			return &transition{
				state: models.ClusterStatusPendingForInput, info: infoClusterInput,
				failing: "API virtual IPs are undefined and must be provided.",
			}
		}
		if failing := strayVIP(&c.spec); failing != "" {
			return insufficient(failing)
		}
	}
	counted := countIn(members)
	masters := counted.ControlPlaneAgents
	switch {
	case masters != wanted && wanted == 1:
		return insufficient("Single-node clusters must have a single control plane node and no workers.")
	case masters != wanted:
		return insufficient(fmt.Sprintf("Clusters must have exactly %d dedicated control plane nodes. Add or remove hosts, "+
			"or change their roles configurations to meet the requirement.", wanted))
	case wanted == 2 && counted.ArbiterAgents == 0 && !allFenced(members):
		return insufficient("The cluster must have exactly 2 dedicated control plane nodes and at least 1 arbiter node or " +
			"the control plane nodes must have fencing credentials. " +
			"Add or remove hosts, or change their roles configurations to meet the requirement.")
	case !allIn(members, models.HostStatusKnown):
		return insufficient(notReadyHosts)
	}
	return &transition{state: models.ClusterStatusReady, info: infoClusterReady}
}

// strayVIP returns an error text for a virtual IP outside all machine networks. A user-managed load balancer
// may have any address.
func strayVIP(spec *hiveext.AgentClusterInstallSpec) string {
	networks := machineNetworks(spec)
	if len(networks) == 0 || userManagedLoadBalancer(spec) {
		return ""
	}
	for kind, vips := range map[string][]string{"api": spec.APIVIPs, "ingress": spec.IngressVIPs} {
		for _, vip := range vips {
			if !inside(vip, networks) {
				return fmt.Sprintf("%s vips <%s> does not belong to machine-network-cidr <%s> and is not set.",
					kind, vip, strings.Join(networks, ","))
			}
		}
	}
	return ""
}

func inside(ip string, networks []string) bool {
	addr, err := netip.ParseAddr(ip)
	return err == nil && slices.ContainsFunc(networks, func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		return err == nil && prefix.Contains(addr)
	})
}

// assignRoles fills the control plane with hosts without a role, the strongest first. The host of a single-node
// cluster becomes a master.
func (s *Simulator) assignRoles(c *cluster, members []*host) {
	missing := c.spec.ProvisionRequirements.ControlPlaneAgents
	var undecided []*host
	for _, h := range members {
		switch {
		case c.singleNode():
			s.setRole(h, models.HostRoleMaster, true)
		case h.requested.role == "" || h.requested.role == models.HostRoleAutoAssign:
			undecided = append(undecided, h)
		case h.requested.role == models.HostRoleMaster:
			missing--
		}
	}
	slices.SortStableFunc(undecided, func(a, b *host) int { return int(strength(b) - strength(a)) })
	for i, h := range undecided {
		role := models.HostRoleWorker
		if i < missing {
			role = models.HostRoleMaster
		}
		s.setRole(h, role, false)
	}
}

func (s *Simulator) setRole(h *host, role models.HostRole, bootstrap bool) {
	if h.role != role || h.bootstrap != bootstrap {
		h.role, h.bootstrap = role, bootstrap
		enqueue(s.agentQueue, h.key)
	}
}

func strength(h *host) int64 {
	if h.inventory == nil || h.inventory.CPU == nil {
		return 0
	}
	return h.inventory.CPU.Count
}

// startAllowed reports whether the installation may start: exactly the requested hosts in each role, all known,
// approved and synced.
func startAllowed(c *cluster, members []*host) bool {
	return !c.hold && c.specError == nil && startObstacle(c, members) == ""
}

// startObstacle returns the reason of RequirementsMet=False in a ready cluster, or "" if the installation may
// start.
func startObstacle(c *cluster, members []*host) string {
	wanted := c.spec.ProvisionRequirements
	counted := countIn(members)
	unsynced := slices.ContainsFunc(members, func(h *host) bool { return h.specError != nil })
	approved := 0
	for _, h := range members {
		if h.approved && h.state == models.HostStatusKnown {
			approved++
		}
	}
	switch {
	case unsynced:
		return hiveext.ClusterUnsyncedAgentsReason
	case counted != wanted:
		return hiveext.ClusterInsufficientAgentsReason
	case approved != hostsOf(wanted):
		return hiveext.ClusterUnapprovedAgentsReason
	}
	return ""
}

// nextPreparing leads to the installation, or to a failure after which the service retries without limit.
func (s *Simulator) nextPreparing(c *cluster, members []*host) *transition {
	failed := &transition{state: models.ClusterStatusReady, info: infoClusterPrepareFailure, delay: s.opts.PreparationRetry}
	switch {
	case s.faults.preparation[c.key] != "":
		failed.failing = notReadyHosts
		return failed
	case !c.prepared:
		return &transition{state: models.ClusterStatusPreparingForInstallation, info: infoClusterPreparing}
	case anyIn(members, models.HostStatusPreparingFailed):
		return failed
	case allIn(members, models.HostStatusPreparingSuccessful):
		return &transition{state: models.ClusterStatusInstalling, info: infoClusterInstalling, delay: s.opts.StageDelay}
	}
	for _, h := range members { // hosts that restarted or were unbound
		if h.state != models.HostStatusKnown && !strings.HasPrefix(h.state, "preparing-") {
			return &transition{
				state: models.ClusterStatusInsufficient, info: infoClusterHostStopped,
				failing: notReadyHosts, delay: s.opts.StageDelay,
			}
		}
	}
	return nil
}

// enterCluster applies a transition. Called with mu held.
func (s *Simulator) enterCluster(c *cluster, to *transition) {
	again := to.state == c.state
	switch to.state {
	case models.ClusterStatusPreparingForInstallation:
		s.chooseBootstrap(c)
		c.prepared = c.prepared || again
	case models.ClusterStatusFinalizing:
		c.operatorsDone = again
	case models.ClusterStatusInstalling:
		c.lastFailure = ""
	case models.ClusterStatusReady:
		if to.info == infoClusterPrepareFailure {
			c.lastFailure = s.faults.preparation[c.key]
		}
	}
	c.failing = to.failing
	c.enter(to.state, to.info, to.delay)
	s.touchCluster(c.key)
}

func (s *Simulator) chooseBootstrap(c *cluster) {
	members := s.members(c.key, false)
	if slices.ContainsFunc(members, func(h *host) bool { return h.bootstrap }) {
		return
	}
	for _, h := range members {
		if h.role == models.HostRoleMaster {
			h.bootstrap = true
			return
		}
	}
}

// percentage returns the progress of the installation as the service counts it: 10 at the start, up to 70 with
// the stages of the hosts. After the cluster's operators it is 95.
func (s *Simulator) percentage(c *cluster) int64 {
	switch {
	case c.state == models.ClusterStatusInstalled || c.state == models.ClusterStatusAddingHosts:
		return 100
	case c.operatorsDone:
		return 95
	case !c.installingNow() && c.state != models.ClusterStatusError:
		return 0
	}
	members := s.members(c.key, false)
	sum := int64(0)
	for _, h := range members {
		sum += h.percentage()
	}
	if len(members) == 0 {
		return 10
	}
	return 10 + sum/int64(len(members))*70/100
}
