// Package attempt concludes from the facts of a reconcile which attempt at an installation is current. It also concludes
// what is left of a failed attempt that is given up. It has no client.
package attempt

import (
	"encoding/json"
	"fmt"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// Retry is the record of another attempt at an installation, on the control plane.
type Retry struct {
	// Requested is the value of the annotation that requested it.
	Requested string `json:"requested"`
	// GivenUp are the UIDs of the objects that are deleted first; empty if that is complete, or there was
	// none.
	GivenUp []types.UID `json:"givenUp,omitempty"`
	// Since is when the last failed installation was given up; zero if none was.
	Since metav1.Time `json:"since,omitzero"`
}

// RecordedRetry returns the record; empty if there is none.
func RecordedRetry(f *facts.Facts) (Retry, error) {
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

// Start returns when the current attempt at the installation began: when the control plane was
// created, or the last failed installation was given up.
func Start(f *facts.Facts) metav1.Time {
	if record, err := RecordedRetry(f); err == nil && !record.Since.IsZero() {
		return record.Since
	}
	return f.ControlPlane.CreationTimestamp
}

// RetryRequested returns the value of an annotation that requests another attempt and was not processed yet;
// "" if none is requested.
func RetryRequested(f *facts.Facts) string {
	requested := f.ControlPlane.Annotations[controlplanev1.RetryInstallationAnnotation]
	if record, err := RecordedRetry(f); err != nil || record.Requested == requested {
		return ""
	}
	return requested
}

// GivesUp reports whether a failed installation is being given up.
func GivesUp(f *facts.Facts) bool { return givenUp(f).Len() > 0 }

// givenUp returns the UIDs of the objects that are given up.
func givenUp(f *facts.Facts) sets.Set[types.UID] {
	record, err := RecordedRetry(f)
	if err != nil {
		return nil
	}
	return sets.New(record.GivenUp...)
}

// Objects are the remaining objects of a failed installation that is given up.
type Objects struct {
	Machines   []*clusterv1.Machine
	Deployment *hivev1.ClusterDeployment
	Install    *hiveext.AgentClusterInstall
	Kubeconfig *metav1.PartialObjectMetadata
}

// ObjectsToGiveUp returns the objects that are given up and still exist.
func ObjectsToGiveUp(f *facts.Facts) Objects {
	given, left := givenUp(f), Objects{}
	left.Machines = slices.DeleteFunc(f.AllMachines(), func(m *clusterv1.Machine) bool { return !given.Has(m.UID) })
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
func GivenUpOwner(f *facts.Facts) metav1.OwnerReference {
	given := sets.List(givenUp(f))
	return metav1.OwnerReference{
		APIVersion: hivev1.SchemeGroupVersion.String(), Kind: "ClusterDeployment", Name: f.ControlPlane.Name, UID: given[0],
	}
}

// NothingLeft reports whether all objects that are given up are deleted.
func NothingLeft(f *facts.Facts) bool {
	left := ObjectsToGiveUp(f)
	return GivesUp(f) && len(left.Machines) == 0 && left.Deployment == nil && left.Install == nil && left.Kubeconfig == nil
}
