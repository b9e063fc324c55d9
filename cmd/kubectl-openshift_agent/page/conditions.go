package page

import (
	"cmp"
	"slices"
	"strings"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/report"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

// condition is a condition of an object.
type condition struct {
	Type, Status, Reason, Message string
	since                         time.Time
	// Age is the time since the last transition.
	Age string
	// Unmet is true if the condition does not have its healthy status.
	Unmet bool
	// Advice and Page are the documentation of the reason.
	Advice, Page string
}

// object is an object with its conditions.
type object struct {
	Kind, Name, File string
	Conditions       []condition
	// Unmet is the number of conditions without their healthy status.
	Unmet int
}

// conditionsOf returns the conditions of an object.
func conditionsOf(o *Object) []condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var all []condition
	for _, item := range list {
		fields, _ := item.(map[string]any)
		text := func(name string) string {
			value, _ := fields[name].(string)
			return value
		}
		c := condition{Type: text("type"), Status: text("status"), Reason: text("reason"), Message: text("message")}
		c.since, _ = time.Parse(time.RFC3339, text("lastTransitionTime"))
		c.Unmet = unmet(c.Type, c.Status)
		c.Advice, c.Page = document(o.GetKind(), c.Reason)
		all = append(all, c)
	}
	return all
}

// negative are conditions of other projects whose healthy status is False. Package judge knows those of Cluster API and ours.
var negative = []hivev1.ClusterInstallConditionType{
	hiveext.ClusterFailedCondition, hiveext.ClusterLastInstallationPreparationFailedCondition,
}

// unmet reports whether a condition does not have its healthy status.
func unmet(name, status string) bool {
	if name == string(hiveext.ClusterStoppedCondition) { // an installation stops at its success and at its failure
		return false
	}
	if slices.Contains(negative, hivev1.ClusterInstallConditionType(name)) {
		return status != string(metav1.ConditionFalse)
	}
	return judge.Unmet(&metav1.Condition{Type: name, Status: metav1.ConditionStatus(status)})
}

// document returns the documentation of a reason.
func document(kind, reason string) (advice, page string) {
	explained := report.Explain(&judge.Cause{Object: judge.Object{Kind: kind}, Reason: reason})
	if n := len(explained.Pages); n > 0 {
		page = explained.Pages[n-1]
	}
	return explained.Advice, page
}

// objectsOf returns the objects with their conditions. Those with unmet conditions come first in their kind.
func objectsOf(in *Input) []object {
	all := make([]object, 0, len(in.Objects))
	for i := range in.Objects {
		o := object{
			Kind: in.Objects[i].GetKind(), Name: in.Objects[i].GetName(), File: in.Objects[i].File, Conditions: conditionsOf(&in.Objects[i]),
		}
		for n := range o.Conditions {
			if c := &o.Conditions[n]; c.Unmet {
				o.Unmet++
			}
			if since := o.Conditions[n].since; !since.IsZero() {
				o.Conditions[n].Age = duration.HumanDuration(max(0, in.Time.Sub(since)))
			}
		}
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b object) int { return cmp.Compare(min(1, b.Unmet), min(1, a.Unmet)) })
	return all
}

// host is a Machine with the objects of its server.
type host struct {
	report.Machine

	// Files are those of the Machine, BareMetalHost and Agent.
	MachineFile, HostFile, AgentFile string
	// Failing are validations of assisted-service that do not pass.
	Failing []string
	Problem string
}

// maxFailing is the number of validations that are shown of a host.
const maxFailing = 8

// hostsOf returns the Machines with their hosts.
func hostsOf(in *Input, r *report.Cluster) []host {
	objects := map[string]*Object{}
	for i := range in.Objects {
		objects[in.Objects[i].GetKind()+"/"+in.Objects[i].GetName()] = &in.Objects[i]
	}
	file := func(key string) string {
		if o := objects[key]; o != nil {
			return o.File
		}
		return ""
	}
	var all []host
	for i := range r.Machines {
		h := host{Machine: r.Machines[i], MachineFile: file(snapshot.KindMachine + "/" + r.Machines[i].Name)}
		if h.State != judge.Ready {
			h.Problem = strings.TrimPrefix(h.Cause.Reason+": "+h.Cause.Message, ": ")
		}
		if h.Host != nil {
			h.HostFile = file(snapshot.KindHost + "/" + h.Host.Name)
		}
		if h.Agent != nil {
			h.AgentFile = file(snapshot.KindAgent + "/" + h.Agent.Name)
			h.Failing = failingOf(objects[snapshot.KindAgent+"/"+h.Agent.Name])
		}
		all = append(all, h)
	}
	return all
}

// failingOf returns the messages of the validations that do not pass.
func failingOf(agent *Object) []string {
	if agent == nil {
		return nil
	}
	groups, _, _ := unstructured.NestedMap(agent.Object, "status", "validationsInfo")
	var failing []string
	for _, group := range groups {
		list, _ := group.([]any)
		for _, item := range list {
			fields, _ := item.(map[string]any)
			if status, _ := fields["status"].(string); status == "failure" || status == "error" {
				id, _ := fields["id"].(string)
				message, _ := fields["message"].(string)
				failing = append(failing, id+": "+message)
			}
		}
	}
	slices.Sort(failing)
	return failing[:min(len(failing), maxFailing)]
}
