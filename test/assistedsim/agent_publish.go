package assistedsim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/openshift/assisted-service/api/common"
	"github.com/openshift/assisted-service/models"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

const (
	clusterNamespaceLabel = "agent-install.openshift.io/clusterdeployment-namespace"
	inventoryPrefix       = "inventory.agent-install.openshift.io/"
	agentPrefix           = "agent.agent-install.openshift.io/"
)

// publishAgent writes metadata first and status second, as the service does. agent is the object as last read
// or written.
func (s *Simulator) publishAgent(ctx context.Context, agent *Agent, h *host) error {
	base := agent.DeepCopy()
	agent.Spec.Approved = h.approved
	describeAgent(agent, h)
	if !equality.Semantic.DeepEqual(base.ObjectMeta, agent.ObjectMeta) || base.Spec.Approved != agent.Spec.Approved {
		if err := s.client.Patch(ctx, agent, client.MergeFrom(base)); err != nil {
			return fmt.Errorf("cannot write Agent: %w", err)
		}
	}
	base = agent.DeepCopy()
	s.fillAgentStatus(&agent.Status, h)
	agent.Status = *agent.Status.DeepCopy() // the response is decoded into the status and must not change the record
	if equality.Semantic.DeepEqual(base.Status, agent.Status) {
		return nil
	}
	if err := s.client.Status().Patch(ctx, agent, client.MergeFrom(base)); err != nil {
		return fmt.Errorf("cannot write status of Agent: %w", err)
	}
	return nil
}

// describeAgent sets finalizer, owner, labels and annotations.
func describeAgent(agent *Agent, h *host) {
	controllerutil.AddFinalizer(agent, agentFinalizer)
	if len(agent.OwnerReferences) == 0 && h.infraEnv.uid != "" {
		agent.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: aiv1beta1.GroupVersion.String(), Kind: "InfraEnv", Name: h.infraEnv.key.Name, UID: h.infraEnv.uid,
		}}
	}
	labels := map[string]string{clusterNamespaceLabel: h.cluster.Namespace}
	annotations := map[string]string{
		agentPrefix + "state": h.state,
		agentPrefix + "role":  string(h.role),
	}
	if h.stage != "" {
		annotations[agentPrefix+"current-stage"] = string(h.stage)
	}
	if h.inventory != nil {
		labelInventory(labels, h.inventory)
		annotations[inventoryPrefix+"version"] = "0.1"
		annotations[agentPrefix+"inventory"] = asJSON(h.inventory)
		annotations[agentPrefix+"validations-info"] = asJSON(hostValidations(h))
	}
	merge(&agent.Labels, labels)
	merge(&agent.Annotations, annotations)
}

func merge(into *map[string]string, from map[string]string) {
	if *into == nil {
		*into = map[string]string{}
	}
	maps.Copy(*into, from)
}

func asJSON(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return "" // JSON can represent all API models
	}
	return string(data)
}

func labelInventory(labels map[string]string, inventory *models.Inventory) {
	fast := false
	for _, disk := range inventory.Disks {
		fast = fast || disk.DriveType == models.DriveTypeSSD
	}
	labels[inventoryPrefix+"storage-hasnonrotationaldisk"] = strconv.FormatBool(fast)
	if cpu := inventory.CPU; cpu != nil {
		virtual := false
		for _, flag := range cpu.Flags {
			virtual = virtual || flag == "vmx" || flag == "svm"
		}
		labels[inventoryPrefix+"cpu-architecture"] = cpu.Architecture
		labels[inventoryPrefix+"cpu-virtenabled"] = strconv.FormatBool(virtual)
	}
	if vendor := inventory.SystemVendor; vendor != nil {
		labels[inventoryPrefix+"host-manufacturer"] = labelValue(vendor.Manufacturer)
		labels[inventoryPrefix+"host-productname"] = labelValue(vendor.ProductName)
		labels[inventoryPrefix+"host-isvirtual"] = strconv.FormatBool(vendor.Virtual)
	}
}

// labelValue drops the characters that a label value cannot contain.
func labelValue(value string) string {
	var kept []rune
	for _, r := range value {
		if (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') {
			kept = append(kept, r)
		}
	}
	return string(kept[:min(len(kept), 63)])
}

func hostValidations(h *host) common.ValidationsStatus {
	result := common.ValidationsStatus{
		"hardware": {{ID: "has-inventory", Status: "success", Message: "Valid inventory exists for the host"}},
	}
	if h.validation == validationFailing && h.failing != "" {
		result["network"] = common.ValidationResults{{ID: "ntp-synced", Status: "failure", Message: h.failing}}
	}
	return result
}

func (s *Simulator) fillAgentStatus(status *AgentStatus, h *host) {
	for _, condition := range agentConditions(h) {
		conditionsv1.SetStatusConditionNoHeartbeat(&status.Conditions, condition)
	}
	if h.cleanup == "" {
		conditionsv1.RemoveStatusCondition(&status.Conditions, aiv1beta1.CleanupCondition)
	}
	status.DebugInfo = DebugInfo{
		State: h.state, StateInfo: h.info,
		EventsURL: s.serviceURL + "/api/assisted-install/v2/events?host_id=" + h.key.Name,
	}
	status.Kind, status.Role, status.Bootstrap = h.kind, h.role, h.bootstrap
	status.DeprovisionInfo = h.deprovision
	status.Progress = HostProgressInfo{}
	if h.stage != "" {
		status.Progress = HostProgressInfo{
			CurrentStage: h.stage, ProgressInfo: h.stageInfo, ProgressStages: h.stages,
			InstallationPercentage: h.percentage(),
			StageStartTime:         seconds(h.stageStart), StageUpdateTime: seconds(h.stageUpdated),
		}
	}
	if h.inventory != nil {
		status.Inventory = agentInventory(h.inventory)
		status.InstallationDiskID = h.installationDisk()
		status.ValidationsInfo = hostValidations(h)
	}
	status.NtpSources = nil
	if h.validation == validationPassing {
		status.NtpSources = []HostNTPSources{{SourceName: "ntp.sim", SourceState: models.SourceStateSynced}}
	}
}
