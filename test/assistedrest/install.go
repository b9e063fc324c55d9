package assistedrest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

// installation makes the order of an install step complete with what the installer and the controller read from the service.
func (s *Service) installation(ctx context.Context, agent hosts.Agent, step *models.Step) (hosts.Instruction, error) {
	order, err := readOrder(step)
	if err != nil {
		return hosts.Instruction{}, err
	}
	to := s.agentEndpoint(agent.AgentConfig)
	cluster, err := s.cluster(ctx, to, order.ClusterID.String())
	if err != nil {
		return hosts.Instruction{}, err
	}
	i := slices.IndexFunc(cluster.Hosts, func(h *models.Host) bool { return h.ID != nil && h.ID.String() == agent.HostID })
	if i < 0 {
		return hosts.Instruction{}, fmt.Errorf("host %s is none of cluster %s", agent.HostID, cluster.ID)
	}
	instruction, err := newInstruction(order, cluster.Hosts[i])
	if err != nil {
		return hosts.Instruction{}, err
	}
	deployment, err := s.deployment(ctx, instruction.ClusterID)
	if err != nil {
		return hosts.Instruction{}, err
	}
	instruction.ClusterNamespace, instruction.ClusterName = deployment.Namespace, deployment.Name
	// A service that does not really generate ignitions serves something else here; what it would merge is in the host.
	pointer, err := s.get(ctx, to, "/v2/infra-env/"+agent.InfraEnvID+"/hosts/"+agent.HostID+"/downloads/ignition")
	if own, ok := withoutReferences(pointer); err == nil && ok {
		instruction.IgnitionOverrides = own
	}
	return instruction, nil
}

func readOrder(step *models.Step) (*models.InstallCmdRequest, error) {
	if len(step.Args) == 0 {
		return nil, errors.New("an install step has no arguments")
	}
	order := &models.InstallCmdRequest{}
	if err := json.Unmarshal([]byte(step.Args[0]), order); err != nil {
		return nil, fmt.Errorf("cannot read the arguments of an install step: %w", err)
	}
	if order.ClusterID == nil || order.Role == nil {
		return nil, errors.New("an install step names no cluster or role")
	}
	return order, nil
}

func newInstruction(order *models.InstallCmdRequest, host *models.Host) (hosts.Instruction, error) {
	instruction := hosts.Instruction{
		Kind:              hosts.Install,
		ClusterID:         order.ClusterID.String(),
		Hostname:          host.RequestedHostname,
		Role:              *order.Role,
		DayTwo:            ptr.Deref(host.Kind, "") == models.HostKindAddToExistingClusterHost,
		InstallationDisk:  ptr.Deref(order.BootDevice, ""),
		KnownStages:       host.ProgressStages,
		IgnitionOverrides: host.IgnitionConfigOverrides,
		InstallerArgs:     order.InstallerArgs,
	}
	if instruction.Role == models.HostRoleBootstrap {
		instruction.Role, instruction.Bootstrap = models.HostRoleMaster, true
	}
	instruction.SingleNode = order.ControlPlaneCount == 1 && !instruction.DayTwo
	if host.NodeLabels != "" {
		if err := json.Unmarshal([]byte(host.NodeLabels), &instruction.NodeLabels); err != nil {
			return hosts.Instruction{}, fmt.Errorf("cannot read the node labels of host %s: %w", host.ID, err)
		}
	}
	return instruction, nil
}

// withoutReferences returns a pointer ignition without the configs that it downloads. The machine config server does
// not exist. A [hosts.Host] already has the configuration that this server would serve. The result is false if the
// input is not an ignition config.
func withoutReferences(raw []byte) (string, bool) {
	var config map[string]any
	if json.Unmarshal(raw, &config) != nil {
		return "", false
	}
	own, ok := config["ignition"].(map[string]any)
	if !ok {
		return "", false
	}
	delete(own, "security")
	if children, ok := own["config"].(map[string]any); ok {
		merge, _ := children["merge"].([]any)
		children["merge"] = slices.DeleteFunc(merge, func(child any) bool {
			fields, _ := child.(map[string]any)
			source, _ := fields["source"].(string)
			return !strings.HasPrefix(source, "data:")
		})
	}
	encoded, err := json.Marshal(config)
	return string(encoded), err == nil
}

// deployment finds the ClusterDeployment of a cluster.
func (s *Service) deployment(ctx context.Context, clusterID string) (types.NamespacedName, error) {
	s.mu.Lock()
	known, ok := s.deployments[clusterID]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	installs := &hiveext.AgentClusterInstallList{}
	if err := s.options.Hub.List(ctx, installs); err != nil {
		return types.NamespacedName{}, fmt.Errorf("cannot list AgentClusterInstalls: %w", err)
	}
	for _, install := range installs.Items {
		metadata := install.Spec.ClusterMetadata
		if metadata != nil && metadata.InfraID == clusterID || strings.Contains(install.Status.DebugInfo.EventsURL, clusterID) {
			found := types.NamespacedName{Namespace: install.Namespace, Name: install.Spec.ClusterDeploymentRef.Name}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.deployments[clusterID] = found
			return found, nil
		}
	}
	return types.NamespacedName{}, fmt.Errorf("no AgentClusterInstall shows cluster %s yet", clusterID)
}

// ingressCertificate returns the certificate of the authority of a cluster's routes.
func ingressCertificate(cluster *models.Cluster) (string, error) {
	authority, err := pki.New("ingress-operator@" + cluster.Name)
	if err != nil {
		return "", err
	}
	return string(authority.PEM()), nil
}
