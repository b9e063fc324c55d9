package facts

import (
	"encoding/json"
	"fmt"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Retry is another attempt at an installation as it is recorded on the control plane.
type Retry struct {
	// Requested is the value of the annotation that asked for it.
	Requested string `json:"asked"`
	// GivenUp are the UIDs of what is deleted first; empty: that is done, or there was nothing to be given up.
	GivenUp []types.UID `json:"givenUp,omitempty"`
	// Since is when the last failed installation was given up; zero: none was.
	Since metav1.Time `json:"since,omitzero"`
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

// AttemptStart is when the present attempt at the installation began: when the control plane was created, or the last
// failed installation was given up.
func (f *Facts) AttemptStart() metav1.Time {
	if record, err := f.RecordedRetry(); err == nil && !record.Since.IsZero() {
		return record.Since
	}
	return f.ControlPlane.CreationTimestamp
}

// RetryRequested is the value of an annotation that asks for another attempt and was not taken up yet; empty: none is asked for.
func (f *Facts) RetryRequested() string {
	asked := f.ControlPlane.Annotations[controlplanev1.RetryInstallationAnnotation]
	if record, err := f.RecordedRetry(); err != nil || record.Requested == asked {
		return ""
	}
	return asked
}

// GivesUp reports whether a failed installation is being given up.
func (f *Facts) GivesUp() bool { return f.givenUp().Len() > 0 }

// givenUp are the UIDs of what is given up.
func (f *Facts) givenUp() sets.Set[types.UID] {
	record, err := f.RecordedRetry()
	if err != nil {
		return nil
	}
	return sets.New(record.GivenUp...)
}

// Leftovers are what is left of what is given up; nil: nothing.
type Leftovers struct {
	Machines   []*clusterv1.Machine
	Deployment *hivev1.ClusterDeployment
	Install    *hiveext.AgentClusterInstall
	Kubeconfig *metav1.PartialObjectMetadata
}

// LeftToGiveUp is what is given up and still there.
func (f *Facts) LeftToGiveUp() Leftovers {
	given, left := f.givenUp(), Leftovers{}
	left.Machines = slices.DeleteFunc(f.allMachines(), func(m *clusterv1.Machine) bool { return !given.Has(m.UID) })
	if f.Deployment != nil && given.Has(f.Deployment.UID) {
		left.Deployment = f.Deployment
	}
	if f.Install != nil && given.Has(f.Install.UID) {
		left.Install = f.Install
	}
	if f.Kubeconfig != nil && given.Has(f.Kubeconfig.UID) {
		left.Kubeconfig = f.Kubeconfig
	}
	return left
}

// GivenUpOwner is an owner that does not exist: the ClusterDeployment of the failed installation, with a UID of what is
// given up. What has no other owner is garbage. A ClusterDeployment that has its name by now has another UID.
func (f *Facts) GivenUpOwner() metav1.OwnerReference {
	given := sets.List(f.givenUp())
	return metav1.OwnerReference{APIVersion: hivev1.SchemeGroupVersion.String(), Kind: "ClusterDeployment", Name: f.ControlPlane.Name, UID: given[0]}
}

// nothingLeft reports whether all that is given up is gone, so that nothing of it counts any more.
func (f *Facts) nothingLeft() bool {
	left := f.LeftToGiveUp()
	return f.GivesUp() && len(left.Machines) == 0 && left.Deployment == nil && left.Install == nil && left.Kubeconfig == nil
}

// ToGiveUp is what has to go before a failed installation is tried again: the Machines that our bootstrap provider
// makes hosts of, what stands for the cluster in assisted-service, and the kubeconfig that was published.
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

// NotRetryable says what speaks against giving a failed installation up; empty: nothing. Whatever may be a Node of a
// cluster that runs is not touched.
func (f *Facts) NotRetryable() []string {
	var against []string
	if !f.OwnsDeployment() || !f.OwnsInstall() || !f.Progress.Registered || f.Progress.Phase != assisted.PhaseFailed || f.Deployment.Spec.Installed {
		against = append(against, "assisted-service does not say now that it failed")
	}
	against = append(against, f.MayRun()...)
	if f.Kubeconfig == nil && AdminKubeconfigOf(f.Install) != "" {
		against = append(against, "the kubeconfig is not published yet, with which it is asked whether the cluster runs")
	} else if unknown := f.NotSilent(); unknown != "" {
		against = append(against, unknown)
	}
	for _, m := range f.Workers {
		if m.Spec.Bootstrap.ConfigRef.Kind == ConfigKind && metav1.GetControllerOf(m) == nil {
			against = append(against, fmt.Sprintf("no controller would create Machine %s again. Delete it, which wipes its host, and create it again afterwards", m.Name))
		}
	}
	return against
}

// NotSilent says why it is not sure that nothing answers where the API of the cluster would be; empty: it is, or no
// host came so far that there was a kubeconfig. An address that nobody can look up, a refusal or another's certificate
// prove nothing.
func (f *Facts) NotSilent() string {
	switch failure := f.Workload.Failure; {
	case f.Cluster == nil:
		return "the Cluster is missing"
	case f.Kubeconfig == nil || f.Workload.Connected:
		return ""
	case failure == nil || failure.KubeconfigVersion != f.Kubeconfig.ResourceVersion:
		return "it is not known yet whether the API of the cluster answers"
	case !failure.Silent:
		return "it is not sure that the cluster does not run: " + failure.Message
	}
	return ""
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
			say("host %s has joined the cluster", bound.Value(Hostname(agent)))
		}
	}
	return against
}
