package status

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// topologyUpgradeable reports why Cluster API cannot upgrade the topology of the Cluster to its end; nil if no cause is
// known. From 1.14 on Cluster API compares the versions of kubelets, literally. OpenShift updates the kubelets of all
// MachineDeployments at the same time. Cluster API then counts each MachineDeployment as being upgraded. It sets the next
// version of none of them, unless more may be upgraded at the same time.
func (v *View) topologyUpgradeable() *metav1.Condition {
	if v.Cluster == nil || v.Cluster.Spec.Topology.Version == "" || !v.Installed() {
		return nil
	}
	deployments, concurrency := len(v.Cluster.Spec.Topology.Workers.MachineDeployments), 1
	const annotation = clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation
	if set, err := strconv.Atoi(v.Cluster.Annotations[annotation]); err == nil {
		concurrency = set
	}
	hash := v.otherHash()
	switch {
	case deployments == 0:
		return nil
	case concurrency <= deployments && v.topologyUpgrades():
		c := condition.False(controlplanev1.TopologyUpgradeableCondition, controlplanev1.UpgradeConcurrencyTooLowReason, fmt.Sprintf(
			"The topology of Cluster %s has %d MachineDeployments, and at most %d may be upgraded at the same time. OpenShift updates the hosts "+
				"of all of them at the same time, and Cluster API 1.14 and newer waits for that without end. Set the annotation %s of the Cluster to "+
				"%d or more", v.Cluster.Name, deployments, concurrency, annotation, deployments+1))
		return &c
	case hash != "":
		c := condition.False(controlplanev1.TopologyUpgradeableCondition, controlplanev1.KubernetesVersionMismatchReason, fmt.Sprintf(
			"The version %s of the topology does not have the hash that kubelets report: %s. Cluster API 1.14 and newer compares the versions "+
				"literally and then upgrades no topology. Set %s to %s before the update of Cluster API",
			versioning.WantedKubernetes(v.Facts), hash, v.Settings().Version, hash))
		return &c
	}
	return nil
}

// topologyUpgrades reports whether an upgrade of the topology is requested or in progress.
func (v *View) topologyUpgrades() bool {
	runs := versioning.KubernetesVersion(v.Facts)
	for _, set := range v.Sets {
		if set.Version != "" && !versions.AtLeast(set.Version, runs) {
			return true
		}
	}
	return versioning.AwaitsRelease(v.Facts) || v.Workload.Upgrading != "" || versioning.RequiredKubernetes(v.Facts) != runs
}

// otherHash returns the version that the kubelets report if the spec has the same version with another hash, or without
// one; "" otherwise.
func (v *View) otherHash() string {
	runs, wanted := v.Workload.Kubernetes(), versioning.WantedKubernetes(v.Facts)
	if runs == wanted || !versions.SameKubernetes(runs, wanted) || !strings.Contains(runs, "+") {
		return ""
	}
	return runs
}
