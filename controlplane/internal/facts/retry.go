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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Retry is the record of another attempt at an installation, on the control plane.
type Retry struct {
	// Requested is the value of the annotation that requested it.
	Requested string `json:"asked"`
	// GivenUp are the UIDs of the objects that are deleted first; empty if that is complete, or there was
	// none.
	GivenUp []types.UID `json:"givenUp,omitempty"`
	// Since is when the last failed installation was given up; zero if none was.
	Since metav1.Time `json:"since,omitzero"`
}

// RecordedRetry returns the record; empty if there is none.
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

// AttemptStart returns when the current attempt at the installation began: when the control plane was
// created, or the last failed installation was given up.
func (f *Facts) AttemptStart() metav1.Time {
	if record, err := f.RecordedRetry(); err == nil && !record.Since.IsZero() {
		return record.Since
	}
	return f.ControlPlane.CreationTimestamp
}

// RetryRequested returns the value of an annotation that requests another attempt and was not processed yet;
// "" if none is requested.
func (f *Facts) RetryRequested() string {
	requested := f.ControlPlane.Annotations[controlplanev1.RetryInstallationAnnotation]
	if record, err := f.RecordedRetry(); err != nil || record.Requested == requested {
		return ""
	}
	return requested
}

// GivesUp reports whether a failed installation is being given up.
func (f *Facts) GivesUp() bool { return f.givenUp().Len() > 0 }

// givenUp returns the UIDs of the objects that are given up.
func (f *Facts) givenUp() sets.Set[types.UID] {
	record, err := f.RecordedRetry()
	if err != nil {
		return nil
	}
	return sets.New(record.GivenUp...)
}

// AttemptObjects are the remaining objects of a failed installation that is given up.
type AttemptObjects struct {
	Machines   []*clusterv1.Machine
	Deployment *hivev1.ClusterDeployment
	Install    *hiveext.AgentClusterInstall
	Kubeconfig *metav1.PartialObjectMetadata
}

// ObjectsToGiveUp returns the objects that are given up and still exist.
func (f *Facts) ObjectsToGiveUp() AttemptObjects {
	given, left := f.givenUp(), AttemptObjects{}
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

// GivenUpOwner returns a reference to an owner that does not exist: the ClusterDeployment of the failed
// installation, with a UID that is given up. Objects without another owner are garbage. A new
// ClusterDeployment of the same name has another UID.
func (f *Facts) GivenUpOwner() metav1.OwnerReference {
	given := sets.List(f.givenUp())
	return metav1.OwnerReference{
		APIVersion: hivev1.SchemeGroupVersion.String(), Kind: "ClusterDeployment", Name: f.ControlPlane.Name, UID: given[0],
	}
}

// nothingLeft reports whether all objects that are given up are deleted.
func (f *Facts) nothingLeft() bool {
	left := f.ObjectsToGiveUp()
	return f.GivesUp() && len(left.Machines) == 0 && left.Deployment == nil && left.Install == nil && left.Kubeconfig == nil
}

// ToGiveUp returns the objects to delete before a failed installation is tried again. These are the Machines
// with hosts of our bootstrap provider, the objects in assisted-service, and the published kubeconfig.
func (f *Facts) ToGiveUp() []types.UID {
	var given []types.UID
	for _, m := range f.allMachines() {
		if f.Controls(m) || m.Spec.Bootstrap.ConfigRef.Kind == workers.ConfigKind {
			given = append(given, m.UID)
		}
	}
	given = append(given, f.Deployment.UID, f.Install.UID)
	if published, _ := f.publishedBefore(); published {
		given = append(given, f.Kubeconfig.UID)
	}
	return given
}

// NotRetryable returns what blocks giving up a failed installation; empty if nothing does. An object that may
// be a Node of a running cluster is not touched.
func (f *Facts) NotRetryable() []string {
	var against []string
	if !f.OwnsDeployment() || !f.OwnsInstall() || !f.Progress.Registered || f.Progress.Phase != assisted.PhaseFailed ||
		f.Deployment.Spec.Installed {
		against = append(against, "assisted-service does not report the failure now")
	}
	against = append(against, f.MayRun()...)
	if f.Kubeconfig == nil && AdminKubeconfigOf(f.Install) != "" {
		against = append(against, "the kubeconfig is not published yet, which is necessary to check whether the cluster runs")
	} else if unknown := f.NotSilent(); unknown != "" {
		against = append(against, unknown)
	}
	for _, m := range f.Workers {
		if m.Spec.Bootstrap.ConfigRef.Kind == workers.ConfigKind && metav1.GetControllerOf(m) == nil {
			against = append(
				against,
				fmt.Sprintf("no controller would create Machine %s again. Delete it, which wipes its host, and create it again afterwards", m.Name),
			)
		}
	}
	return against
}

// NotSilent returns why it is uncertain that the API of the cluster does not answer. It is "" if that is
// certain, or if no host reached the stage in which a kubeconfig exists. An unresolvable address, a refusal
// or a foreign certificate prove nothing.
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

// MayRun returns why a cluster whose installation failed may run nevertheless; empty if nothing shows that.
func (f *Facts) MayRun() []string {
	var against []string
	add := func(format string, args ...any) { against = append(against, fmt.Sprintf(format, args...)) }
	if f.Workload.Connected || ptr.Deref(f.ControlPlane.Status.Initialization.ControlPlaneInitialized, false) {
		add("the API of the cluster answers, or did")
	}
	for _, m := range f.allMachines() {
		if metal3.HadNode(m) {
			add("Machine %s has, or had, a Node", m.Name)
		}
	}
	for i := range f.Agents {
		switch agent := &f.Agents[i]; agent.Status.Progress.CurrentStage {
		case models.HostStageJoined, models.HostStageDone:
			add("host %s has joined the cluster", bound.Value(Hostname(agent)))
		}
	}
	return against
}
