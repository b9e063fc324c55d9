package facts

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

// Owner returns the owner of the objects of the config, as far as it is known: a missing Cluster has no UID.
func (f *Facts) Owner() contract.Owner {
	if f.Cluster != nil {
		return contract.OwnerOf(f.Cluster)
	}
	return contract.Owner{Namespace: f.Config.Namespace, Cluster: f.ClusterName()}
}

// ForeignInfraEnv returns why an InfraEnv with the Machine's name, or with the label of the config, does not
// belong to the config, for messages. It is "" if it does. The argument created reports whether this provider
// wrote to it.
//
// After the data was handed out, a restored InfraEnv also belongs to the config. A backup loses its field
// managers, and gives the Cluster another UID. Before that, another client has created it, or a Machine of a
// former Cluster has left it behind. An InfraEnv with all labels and annotations of the config belongs to the
// config although its field managers were lost. InfraEnvMarksMissing returns those that a user has to restore.
func (f *Facts) ForeignInfraEnv(infraEnv *assisted.InfraEnv, created bool) string {
	owner := f.Owner()
	if f.Cluster == nil || f.DataHandedOut() {
		owner.Former = []types.UID{types.UID(infraEnv.Annotations[contract.ClusterUIDAnnotation])}
	}
	name, labeled := infraEnv.Labels[bootstrapv1.ConfigNameLabel]
	switch ref, controller := infraEnv.Spec.ClusterRef, metav1.GetControllerOf(infraEnv); {
	case labeled && name != format.MustFormatValue(f.Config.Name):
		return "it serves another OpenshiftAssistedConfig"
	case owner.Cluster != "" && owner.ClaimOf(infraEnv) == contract.Foreign:
		return "it belongs to " + owner.OwnerName(infraEnv)
	case created:
		return ""
	case !labeled || !f.DataHandedOut() && (owner.UID == "" || len(f.InfraEnvMarksMissing(infraEnv)) > 0):
		return "another client created it"
	case ref != nil: // this provider never sets it
		return "it serves a ClusterDeployment by spec.clusterRef"
	case controller != nil:
		return fmt.Sprintf("it belongs to %s %s", controller.Kind, controller.Name)
	case infraEnv.Name != f.infraEnvName():
		return "it has another name than the Machine"
	}
	return ""
}

// InfraEnvMarksMissing returns the labels and annotations that identify the InfraEnv of the config, and that an InfraEnv
// lacks. The UID of a missing Cluster is unknown and not returned.
func (f *Facts) InfraEnvMarksMissing(infraEnv *assisted.InfraEnv) []string {
	owner := f.Owner()
	var missing []string
	for _, mark := range []struct{ kind, key, found, wanted string }{
		{"label", bootstrapv1.ConfigNameLabel, infraEnv.Labels[bootstrapv1.ConfigNameLabel], format.MustFormatValue(f.Config.Name)},
		{"label", clusterv1.ClusterNameLabel, infraEnv.Labels[clusterv1.ClusterNameLabel], owner.Cluster},
		{"annotation", contract.ClusterUIDAnnotation, infraEnv.Annotations[contract.ClusterUIDAnnotation], string(owner.UID)},
	} {
		if mark.wanted != "" && mark.found != mark.wanted {
			missing = append(missing, fmt.Sprintf("%s %s=%s", mark.kind, mark.key, mark.wanted))
		}
	}
	return missing
}

// infraEnvName returns the name of the config's InfraEnv: that of the Machine, which the config usually
// shares.
func (f *Facts) infraEnvName() string {
	if f.Machine != nil {
		return f.Machine.Name
	}
	return f.Config.Name
}
