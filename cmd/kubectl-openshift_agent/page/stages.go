package page

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/report"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// span is a stage of a Machine or of the cluster. The end of a stage that continues is zero.
type span struct {
	label, class, detail string
	from, to             time.Time
}

// step is a condition that ends a stage.
type step struct{ condition, label, class string }

// hostLabels are the labels and colors of the stages of a host, clusterSteps the conditions of a control plane.
var (
	hostLabels = map[string]step{
		bootstrapv1.DiscoveryImageReadyCondition: {label: "Discovery image", class: "prepare"},
		bootstrapv1.DataSecretAvailableCondition: {label: "Bootstrap data", class: "prepare2"},
		bootstrapv1.HostIdentifiedCondition:      {label: "Power on, boot, identify", class: "boot"},
		bootstrapv1.HostBoundCondition:           {label: "Bind", class: "bind"},
		bootstrapv1.HostApprovedCondition:        {label: "Validate, approve", class: "bind2"},
		bootstrapv1.HostInstalledCondition:       {label: "Install", class: "install"},
	}
	nodeSteps    = []step{{clusterv1.MachineNodeHealthyCondition, "Node", "node"}}
	clusterSteps = []step{
		{controlplanev1.ReleaseImageResolvedCondition, "Release image", "prepare"},
		{controlplanev1.MachinesCreatedCondition, "Create Machines", "prepare2"},
		{controlplanev1.InstalledCondition, "Install", "install"},
		{controlplanev1.KubeconfigAvailableCondition, "Kubeconfig", "bind"},
		{controlplanev1.InitializedCondition, "Initialize", "bind2"},
		{controlplanev1.AvailableCondition, "Become available", "node"},
	}
)

// hostSteps returns the stages of a host in their order.
func hostSteps() []step {
	var steps []step
	for _, condition := range bootstrapv1.HostStages() {
		s := hostLabels[condition]
		s.condition = condition
		steps = append(steps, s)
	}
	return steps
}

// spansOf returns the stages that the conditions show. Each stage begins with the end of the one before. A stage ends the
// list if it continues.
func spansOf(start time.Time, conditions []metav1.Condition, steps []step) []span {
	var spans []span
	for _, s := range steps {
		c := meta.FindStatusCondition(conditions, s.condition)
		if c == nil {
			return spans
		}
		current := span{label: s.label, class: s.class, from: start, detail: s.condition + ": " + c.Reason}
		if c.Status != metav1.ConditionTrue {
			current.detail = s.condition + ": " + c.Reason + ". " + c.Message
			return append(spans, current)
		}
		current.to = later(start, c.LastTransitionTime.Time)
		start = current.to
		spans = append(spans, current)
	}
	return spans
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// machineSpans returns the stages of a Machine.
func machineSpans(m *snapshot.Machine, r *report.Machine) []span {
	start, spans := m.CreationTimestamp.Time, []span(nil)
	if m.Config != nil {
		steps := hostSteps()
		spans = spansOf(start, m.Config.Status.Conditions, steps)
		if len(spans) < len(steps) || spans[len(spans)-1].to.IsZero() {
			return withState(spans, r.State)
		}
		start = spans[len(spans)-1].to
	}
	return withState(append(spans, spansOf(start, m.Status.Conditions, nodeSteps)...), r.State)
}

// withState shows at the stage that continues that it needs attention.
func withState(spans []span, state judge.State) []span {
	if n := len(spans) - 1; n >= 0 && spans[n].to.IsZero() && state.NeedsAttention() {
		spans[n].class = strings.ToLower(string(state))
	}
	return spans
}

// operations are those of the Bare Metal Operator on a host.
var operations = []struct{ field, label string }{
	{"register", "Register"}, {"inspect", "Inspect"}, {"provision", "Provision"}, {"deprovision", "Deprovision"},
}

// hostSpans returns the operations of the Bare Metal Operator on a host.
func hostSpans(o *unstructured.Unstructured) []span {
	if o == nil {
		return nil
	}
	var spans []span
	for _, operation := range operations {
		at := func(field string) time.Time {
			text, _, _ := unstructured.NestedString(o.Object, "status", "operationHistory", operation.field, field)
			parsed, _ := time.Parse(time.RFC3339, text)
			return parsed
		}
		if from := at("start"); !from.IsZero() {
			detail := "Bare Metal Operator: " + operation.label
			spans = append(spans, span{label: operation.label, class: "bmh", from: from, to: at("end"), detail: detail})
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	return spans
}

// reached matches the events in which assisted-service reports the stage of a host.
var reached = regexp.MustCompile(`reached installation stage ([A-Za-z][A-Za-z ]*[a-z])`)

// serviceSpans returns the stages of an installation that assisted-service reports of a host. The last stage ends when it begins.
func serviceSpans(events []ServiceEvent, host string) []span {
	var spans []span
	for _, e := range events {
		found := reached.FindStringSubmatch(e.Message)
		if found == nil || e.Host != host || host == "" {
			continue
		}
		if n := len(spans); n > 0 {
			if spans[n-1].label == found[1] {
				continue
			}
			spans[n-1].to = e.Time
		}
		spans = append(spans, span{label: found[1], class: "stage" + string(rune('0'+len(spans)%2)), from: e.Time, detail: e.Message})
	}
	if n := len(spans); n > 0 && spans[n-1].label == "Done" {
		return spans[:n-1]
	}
	return spans
}
