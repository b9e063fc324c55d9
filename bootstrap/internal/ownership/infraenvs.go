// Package ownership concludes from the facts of a reconcile whether an InfraEnv belongs to a config. It has no client.
package ownership

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

// Of returns the owner of the objects of the config, as far as it is known: a missing Cluster has no UID.
func Of(f *facts.Facts) contract.Owner {
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
// former Cluster has left it behind. An InfraEnv without field managers, but with all labels and annotations of the
// config, belongs to the config once a host is chosen (see InfraEnvAdvice). Without a host the InfraEnv may serve
// the running server of a former Machine with the same name.
func ForeignInfraEnv(f *facts.Facts, infraEnv *aiv1beta1.InfraEnv, created bool) string {
	owner := Of(f)
	if f.Cluster == nil || f.DataHandedOut() {
		owner.Former = []types.UID{types.UID(infraEnv.Annotations[contract.ClusterUIDAnnotation])}
	}
	labeled := infraEnv.Labels[bootstrapv1.ConfigNameLabel] == format.MustFormatValue(f.Config.Name)
	marked := hostKnown(f) && owner.UID != "" && len(infraEnvMarksMissing(f, infraEnv)) == 0
	switch other, another := otherConfigOf(f, infraEnv), otherUse(infraEnv); {
	case owner.Cluster != "" && owner.ClaimOf(infraEnv) == contract.Foreign:
		return "it belongs to " + owner.OwnerName(infraEnv)
	case other != "":
		return "it serves OpenshiftAssistedConfig " + other
	case created:
		return ""
	case another != "":
		return another
	case !labeled || !f.DataHandedOut() && !marked:
		return "another client created it"
	case infraEnv.Name != infraEnvName(f):
		return "it has another name than the Machine"
	}
	return ""
}

// hostKnown reports whether the infra machine exists and has a host.
func hostKnown(f *facts.Facts) bool { return f.InfraMachine != nil && f.HostChosen() }

// otherConfigOf returns the name of the other config that an InfraEnv serves, or "".
func otherConfigOf(f *facts.Facts, infraEnv *aiv1beta1.InfraEnv) string {
	name := infraEnv.Labels[bootstrapv1.ConfigNameLabel]
	if name == format.MustFormatValue(f.Config.Name) {
		return ""
	}
	return name
}

// otherUse returns what uses an InfraEnv, for messages, or "". This provider sets neither spec.clusterRef nor an owner.
func otherUse(infraEnv *aiv1beta1.InfraEnv) string {
	if ref := infraEnv.Spec.ClusterRef; ref != nil {
		return fmt.Sprintf("it serves ClusterDeployment %s by spec.clusterRef", bound.Value(ref.Name))
	}
	for _, owner := range infraEnv.OwnerReferences {
		return fmt.Sprintf("it belongs to %s %s", bound.Value(owner.Kind), bound.Value(owner.Name))
	}
	return ""
}

// InfraEnvAdvice returns, for messages, how a user makes a foreign InfraEnv with the name of the Machine belong to the
// config. It is "" if the InfraEnv names another owner: that owner's Agents would be deleted together with the
// Machine. It is also "" until a host is chosen, because the deletion of the Machine wipes nothing until then.
func InfraEnvAdvice(f *facts.Facts, infraEnv *aiv1beta1.InfraEnv) string {
	owner, missing := Of(f), infraEnvMarksMissing(f, infraEnv)
	former := owner.FormerCluster(infraEnv)
	owner.Former = []types.UID{former}
	switch {
	case !f.DataHandedOut() && !hostKnown(f), len(missing) == 0:
		return ""
	case owner.Cluster == "", owner.ClaimOf(infraEnv) == contract.Foreign, otherConfigOf(f, infraEnv) != "", otherUse(infraEnv) != "":
		return ""
	}
	marks := strings.Join(missing, ", ")
	if former != "" {
		return fmt.Sprintf("Only if Cluster %s was restored or moved, set its %s: "+
			"a server of the former Cluster would be removed from its cluster", owner.Cluster, marks)
	}
	return fmt.Sprintf("If it was created for Machine %s, set its %s", infraEnvName(f), marks)
}

// infraEnvMarksMissing returns the labels and annotations that identify the InfraEnv of the config, and that an InfraEnv
// lacks. The UID of a missing Cluster is unknown and not returned.
func infraEnvMarksMissing(f *facts.Facts, infraEnv *aiv1beta1.InfraEnv) []string {
	owner := Of(f)
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
func infraEnvName(f *facts.Facts) string {
	if f.Machine != nil {
		return f.Machine.Name
	}
	return f.Config.Name
}
