package facts

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/openshift/assisted-service/models"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Retry is another attempt at an installation as it is recorded on the control plane.
type Retry struct {
	// Asked is the value of the annotation that asked for it.
	Asked string `json:"asked"`
	// GivenUp are the UIDs of what is deleted first; empty: that is done, or there was nothing to be given up.
	GivenUp []types.UID `json:"givenUp,omitempty"`
}

// RecordedRetry reads what is recorded; empty: nothing is.
func (f *Facts) RecordedRetry() (Retry, error) {
	record := Retry{}
	value, recorded := f.ControlPlane.Annotations[controlplanev1.RetriedInstallationAnnotation]
	if !recorded {
		return record, nil
	}
	if err := json.Unmarshal([]byte(value), &record); err != nil {
		return Retry{}, fmt.Errorf("the annotation %s cannot be read: %w", controlplanev1.RetriedInstallationAnnotation, err)
	}
	return record, nil
}

// RetryAsked is the value of an annotation that asks for another attempt and was not taken up yet; empty: none is asked for.
func (f *Facts) RetryAsked() string {
	asked := f.ControlPlane.Annotations[controlplanev1.RetryInstallationAnnotation]
	if record, err := f.RecordedRetry(); err != nil || record.Asked == asked {
		return ""
	}
	return asked
}

// GivesUp tells whether a failed installation is being given up.
func (f *Facts) GivesUp() bool {
	record, err := f.RecordedRetry()
	return err == nil && len(record.GivenUp) > 0
}

// IsGivenUp tells whether an object that exists is one of those that are given up.
func (f *Facts) IsGivenUp(obj metav1.Object) bool {
	record, err := f.RecordedRetry()
	return err == nil && slices.Contains(record.GivenUp, obj.GetUID())
}

// GivenUpMachines are those of the Machines that are given up that are left.
func (f *Facts) GivenUpMachines() []*clusterv1.Machine {
	return slices.DeleteFunc(f.allMachines(), func(m *clusterv1.Machine) bool { return !f.IsGivenUp(m) })
}

// gaveUp tells whether nothing is left of what is given up, so that nothing of it counts any more.
func (f *Facts) gaveUp() bool {
	left := len(f.GivenUpMachines()) > 0 || f.Deployment != nil && f.IsGivenUp(f.Deployment) || f.Install != nil && f.IsGivenUp(f.Install) ||
		f.Kubeconfig != nil && f.IsGivenUp(f.Kubeconfig)
	return f.GivesUp() && !left
}

// ToGiveUp is what has to go before a failed installation is tried again: the Machines that our bootstrap provider makes hosts of, what stands for the cluster in assisted-service, and the
// kubeconfig that was published.
func (f *Facts) ToGiveUp() []types.UID {
	var given []types.UID
	for _, m := range f.allMachines() {
		if f.Controls(m) || m.Spec.Bootstrap.ConfigRef.Kind == ConfigKind {
			given = append(given, m.UID)
		}
	}
	given = append(given, f.Deployment.UID, f.Install.UID)
	if published, _ := f.publishedBefore(); published {
		given = append(given, f.Kubeconfig.UID)
	}
	return given
}

// NotRetryable says what speaks against giving a failed installation up; empty: nothing. Whatever may be a Node of a cluster that runs is not touched.
func (f *Facts) NotRetryable() []string {
	var against []string
	say := func(format string, args ...any) { against = append(against, fmt.Sprintf(format, args...)) }
	if !f.OwnsDeployment() || !f.OwnsInstall() || f.Progress.Phase != assisted.PhaseFailed || f.Deployment.Spec.Installed {
		say("assisted-service does not say now that it failed")
	}
	against = append(against, f.MayRun()...)
	if published, _ := f.publishedBefore(); published && f.Workload.Failure == nil && !f.Workload.Connected {
		say("it is not known yet whether the API of the cluster answers")
	}
	for _, m := range f.Workers {
		if m.Spec.Bootstrap.ConfigRef.Kind == ConfigKind && metav1.GetControllerOf(m) == nil {
			say("nobody would make Machine %s again: delete it, and make it anew afterwards", m.Name)
		}
	}
	return against
}

// MayRun says why a cluster whose installation failed may run all the same; empty: it does not, as far as is known.
func (f *Facts) MayRun() []string {
	var against []string
	say := func(format string, args ...any) { against = append(against, fmt.Sprintf(format, args...)) }
	if f.Workload.Connected || ptr.Deref(f.ControlPlane.Status.Initialization.ControlPlaneInitialized, false) {
		say("the API of the cluster answers, or did")
	}
	for _, m := range f.allMachines() {
		if metal3.HadNode(m) {
			say("Machine %s has, or had, a Node", m.Name)
		}
	}
	for i := range f.Agents {
		switch agent := &f.Agents[i]; agent.Status.Progress.CurrentStage {
		case models.HostStageJoined, models.HostStageDone:
			say("host %s has joined the cluster", Hostname(agent))
		}
	}
	return against
}
