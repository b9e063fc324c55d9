package status

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// ignoredList is a kind of validations of which assisted-service ignores failures.
type ignoredList struct {
	of, annotation string
	// field are the validations of config.ignoredValidations, stated those in the annotation of the AgentClusterInstall.
	field, stated []string
}

// validationsEnforced reports the validations that assisted-service ignores for the cluster; nil if there are none. They
// follow from the spec, or another client set them on the AgentClusterInstall. A cluster that was installed with the field
// has the condition for ever.
func (v *View) validationsEnforced() *metav1.Condition {
	lists := v.ignoredLists()
	var configured, stated, all []string
	for _, l := range lists {
		configured = appendList(configured, l.of, l.field)
		stated = appendList(stated, l.of, l.stated)
		all = appendList(all, l.of, slices.Concat(l.field, l.stated))
	}
	const ignores = "assisted-service ignores failures of validations "
	var message string
	switch {
	case len(all) == 0:
		return nil
	case v.Installed() && len(stated) == 0:
		message = "config.ignoredValidations names validations " + strings.Join(configured, "; ") + v.installedIgnoring(configured)
	case v.Installed():
		message = ignores + strings.Join(stated, "; ") + ", also for hosts that are added" + v.installedIgnoring(configured)
	default:
		message = ignores + strings.Join(all, "; ") + ". The installation may fail and leave wiped hosts, and Red Hat does not " +
			"support the cluster"
	}
	message += v.howToEnforce(lists, len(stated) > 0)
	c := condition.False(controlplanev1.ValidationsEnforcedCondition, controlplanev1.ValidationsIgnoredReason, message)
	return &c
}

// ignoredLists returns the ignored validations of the cluster and of its hosts.
func (v *View) ignoredLists() []ignoredList {
	field := ptr.Deref(v.ControlPlane.Spec.Config.IgnoredValidations, controlplanev1.IgnoredValidations{})
	lists := []ignoredList{
		{of: "of the cluster", annotation: assisted.IgnoredClusterValidationsAnnotation, field: field.Cluster},
		{of: "of its hosts", annotation: assisted.IgnoredHostValidationsAnnotation, field: field.Hosts},
	}
	if !ownership.OwnsInstall(v.Facts) {
		return lists
	}
	for i := range lists {
		for id := range strings.SplitSeq(v.Install.Annotations[lists[i].annotation], ",") {
			if id = strings.TrimSpace(id); id != "" {
				lists[i].stated = append(lists[i].stated, bound.Value(id))
			}
		}
	}
	return lists
}

// installedIgnoring describes an installed cluster whose spec has the given ignored validations. An imported cluster was
// installed elsewhere, and may have been installed without them.
func (v *View) installedIgnoring(configured []string) string {
	switch {
	case len(configured) == 0:
		return ""
	case ownership.Imported(v.Facts):
		return ". If the cluster was installed with config.ignoredValidations, Red Hat does not support it"
	}
	return ". The cluster was installed with config.ignoredValidations, and Red Hat does not support it"
}

// howToEnforce returns the action that enforces the validations in the present phase; stated reports whether the
// AgentClusterInstall has an annotation.
func (v *View) howToEnforce(lists []ignoredList, stated bool) string {
	const enforce = ". To enforce the validations, remove "
	switch may := registration.MayIgnore(v.InstallationState, v.Progress); {
	case v.Installed() && (!may || !stated):
		return "" // assisted-service refuses a change, or enforces the validations
	case v.Installed():
		return enforce + v.ignoredSources(lists)
	case v.Phase == controlplanev1.InstallationFailed:
		return ". To enforce the validations in another attempt, remove " + v.ignoredSources(lists) + " before its installation starts"
	case !may:
		return ". Do not change them before the cluster is installed: assisted-service refuses a change, and does not complete " +
			"the installation before the change is reverted"
	}
	return enforce + v.ignoredSources(lists) + " before the installation starts"
}

// ignoredSources names what states the ignored validations: the field, or annotations of the control plane or of the
// AgentClusterInstall. The field cannot change once the cluster is installed.
func (v *View) ignoredSources(lists []ignoredList) string {
	var sources []string
	for _, l := range lists {
		_, passedOn := v.ControlPlane.Annotations[l.annotation]
		switch {
		case len(l.field)+len(l.stated) == 0:
		case len(l.field) > 0 && !v.Installed():
			sources = append(sources, "config.ignoredValidations")
		case passedOn && v.ControlPlane.Spec.Config.IgnoredValidations == nil:
			sources = append(sources, fmt.Sprintf("the annotation %s of the control plane", l.annotation))
		default:
			sources = append(sources, fmt.Sprintf("the annotation %s of AgentClusterInstall %s", l.annotation, v.ControlPlane.Name))
		}
	}
	return strings.Join(slices.Compact(sources), " and ")
}

// maxNamedValidations is the number of ignored validations that the condition names: each is a risk of its own.
const maxNamedValidations = 8

// appendList appends a list of validations to parts, unless the list is empty.
func appendList(parts []string, of string, validations []string) []string {
	if len(validations) == 0 {
		return parts
	}
	named, more := slices.Compact(slices.Sorted(slices.Values(validations))), ""
	if left := len(named) - maxNamedValidations; left > 0 {
		named, more = named[:maxNamedValidations], " and "+strconv.Itoa(left)+" more"
	}
	return append(parts, of+": "+strings.Join(named, ", ")+more)
}
