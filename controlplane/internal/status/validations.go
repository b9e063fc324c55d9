package status

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// validationsEnforced reports the validations that assisted-service ignores for the cluster; nil if there are none. They
// follow from the spec, or another client set them on the AgentClusterInstall. An installed cluster has been installed in
// spite of them, so that the condition stays.
func (v *View) validationsEnforced() *metav1.Condition {
	ignored := v.ControlPlane.Spec.Config.IgnoredValidations
	if ignored == nil {
		ignored = &controlplanev1.IgnoredValidations{}
	}
	var parts []string
	if cluster := v.ignored(ignored.Cluster, assisted.IgnoredClusterValidationsAnnotation); len(cluster) > 0 {
		parts = append(parts, "of the cluster: "+list(cluster))
	}
	if hosts := v.ignored(ignored.Hosts, assisted.IgnoredHostValidationsAnnotation); len(hosts) > 0 {
		parts = append(parts, "of its hosts: "+list(hosts))
	}
	if len(parts) == 0 {
		return nil
	}
	message := "assisted-service ignores failures of validations " + strings.Join(parts, "; ")
	if v.Installed() {
		message += ". The cluster was installed in spite of them, and Red Hat does not support it"
	} else {
		message += ". The installation may fail and leave wiped hosts, and Red Hat does not support the cluster. To enforce the " +
			"validations, remove config.ignoredValidations before the installation starts"
	}
	c := condition.False(controlplanev1.ValidationsEnforcedCondition, controlplanev1.ValidationsIgnoredReason, message)
	return &c
}

// ignored returns the validations of the spec and of the annotation of the AgentClusterInstall, sorted.
func (v *View) ignored(configured []string, annotation string) []string {
	all := slices.Clone(configured)
	if ownership.OwnsInstall(v.Facts) {
		for id := range strings.SplitSeq(v.Install.Annotations[annotation], ",") {
			if id = strings.TrimSpace(id); id != "" {
				all = append(all, bound.Value(id))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// maxNamedValidations is the number of ignored validations that the condition names: each is a risk of its own.
const maxNamedValidations = 8

func list(validations []string) string {
	if more := len(validations) - maxNamedValidations; more > 0 {
		return strings.Join(validations[:maxNamedValidations], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(validations, ", ")
}
