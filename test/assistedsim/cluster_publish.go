package assistedsim

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/openshift/assisted-service/api/common"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// publishCluster writes the status of the AgentClusterInstall. It skips a cluster whose installation starts
// now: the real service starts it in the same reconcile in which the cluster becomes ready.
func (s *Simulator) publishCluster(ctx context.Context, aci *hiveext.AgentClusterInstall, c *cluster) error {
	base := aci.DeepCopy()
	s.mu.Lock()
	if c.state == models.ClusterStatusReady && !time.Now().Before(c.due) {
		if next := s.nextClusterState(c); next != nil && next.state == models.ClusterStatusPreparingForInstallation {
			s.mu.Unlock()
			return nil
		}
	}
	s.fillClusterStatus(&aci.Status, c)
	aci.Status = *aci.Status.DeepCopy() // the response is decoded into the status and must not change the record
	s.mu.Unlock()
	return s.patchClusterStatus(ctx, aci, base)
}

// publishUnavailable writes the reason why the cluster cannot be registered.
func (s *Simulator) publishUnavailable(ctx context.Context, aci *hiveext.AgentClusterInstall, problem error) error {
	base := aci.DeepCopy()
	for _, condition := range unavailableConditions(problem) {
		setClusterCondition(&aci.Status.Conditions, condition)
	}
	return client.IgnoreNotFound(s.patchClusterStatus(ctx, aci, base))
}

func (s *Simulator) patchClusterStatus(ctx context.Context, aci, base *hiveext.AgentClusterInstall) error {
	if equality.Semantic.DeepEqual(base.Status, aci.Status) {
		return nil
	}
	if err := s.client.Status().Patch(ctx, aci, client.MergeFrom(base)); err != nil {
		return fmt.Errorf("cannot write status of AgentClusterInstall: %w", err)
	}
	return nil
}

func (s *Simulator) fillClusterStatus(status *hiveext.AgentClusterInstallStatus, c *cluster) {
	members := s.members(c.key, false)
	for _, condition := range clusterConditions(c, members) {
		setClusterCondition(&status.Conditions, condition)
	}
	status.DebugInfo = hiveext.DebugInfo{
		EventsURL: s.serviceURL + "/api/assisted-install/v2/events?cluster_id=" + c.id,
		State:     c.state, StateInfo: c.info,
	}
	if c.installingNow() || c.state == models.ClusterStatusError {
		status.DebugInfo.LogsURL = s.serviceURL + "/api/assisted-install/v2/clusters/" + c.id + "/logs"
	}
	status.Progress.TotalPercentage = s.percentage(c)
	status.PlatformType = c.platform()
	status.UserManagedNetworking = ptr.To(c.userManagedNetworking())
	status.MachineNetwork = c.spec.Networking.MachineNetwork
	status.APIVIPs, status.IngressVIPs = c.spec.APIVIPs, c.spec.IngressVIPs
	if c.singleNode() && len(members) == 1 {
		if ip := hostAddress(members[0]); ip != "" {
			status.APIVIPs, status.IngressVIPs = []string{ip}, []string{ip}
		}
	}
	status.APIVIP, status.IngressVIP = first(status.APIVIPs), first(status.IngressVIPs)
	status.ValidationsInfo = clusterValidations(c)
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func hostAddress(h *host) string {
	if h.inventory == nil {
		return ""
	}
	for _, nic := range h.inventory.Interfaces {
		for _, cidr := range nic.IPV4Addresses {
			if prefix, err := netip.ParsePrefix(cidr); err == nil {
				return prefix.Addr().String()
			}
		}
	}
	return ""
}

func clusterValidations(c *cluster) common.ValidationsStatus {
	hosts := common.ValidationResult{
		ID: "all-hosts-are-ready-to-install", Status: "success", Message: "All hosts in the cluster are ready to install.",
	}
	if c.waiting() && c.failing != "" {
		hosts.Status, hosts.Message = "failure", c.failing
	}
	return common.ValidationsStatus{
		"configuration": {{ID: "pull-secret-set", Status: "success", Message: "The pull secret is set."}},
		"hosts-data":    {hosts},
	}
}

// writeMetadata writes AgentClusterInstall.spec.clusterMetadata, the only field of a spec that the service
// itself writes.
func (s *Simulator) writeMetadata(ctx context.Context, aci *hiveext.AgentClusterInstall, metadata *hivev1.ClusterMetadata) error {
	base := aci.DeepCopy()
	aci.Spec.ClusterMetadata = metadata
	if equality.Semantic.DeepEqual(base.Spec.ClusterMetadata, metadata) {
		return nil
	}
	if err := s.client.Patch(ctx, aci, client.MergeFrom(base)); err != nil {
		return fmt.Errorf("cannot write cluster metadata: %w", err)
	}
	return nil
}
