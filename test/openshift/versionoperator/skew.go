package versionoperator

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// kubeletMinor is the prefix of reason and message of the kube-apiserver operator for old kubelets.
const kubeletMinor = "KubeletMinorVersion"

// tolerated returns how many minor versions a kubelet may be older than the kube-apiserver of a release. An even 4.y is
// upgraded from the previous even one (EUS) with the kubelets of that one (kube-apiserver operator).
func tolerated(release semver.Version) uint64 {
	switch {
	case release.Major >= 5:
		return min(release.Minor+1, 3)
	case release.Minor%2 == 0:
		return 2
	}
	return 1
}

// kubeletsBehind returns the Nodes whose kubelets are too old for the kube-apiserver of the next minor version.
func (v *view) kubeletsBehind(runs semver.Version) (behind []string, oldest string) {
	next := semver.Version{Major: runs.Major, Minor: runs.Minor + 1}
	if runs.Major == 4 && runs.Minor == 23 {
		next = semver.Version{Major: 5}
	}
	serves, err := semver.ParseTolerant(v.kubelet(next.String()))
	if err != nil {
		return nil, ""
	}
	for i := range v.nodes {
		kubelet, err := semver.ParseTolerant(v.nodes[i].Status.NodeInfo.KubeletVersion)
		if err == nil && kubelet.Minor+tolerated(next) < serves.Minor {
			behind, oldest = append(behind, v.nodes[i].Name), kubelet.String()
		}
	}
	return behind, oldest
}

// kubeletConditions returns the condition Upgradeable for kubelets that are too old for the next minor version, for
// example in a paused pool.
func (v *view) kubeletConditions(operator *configv1.ClusterOperator) []openshift.Condition {
	runs, err := semver.Parse(operatorVersion(operator))
	if err != nil {
		return nil
	}
	c := openshift.Condition{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionTrue, Reason: "AsExpected"}
	behind, oldest := v.kubeletsBehind(runs)
	switch len(behind) {
	case 0:
		old := openshift.FindCondition(operator, configv1.OperatorUpgradeable)
		if old == nil || !strings.HasPrefix(old.Reason, kubeletMinor) {
			return nil
		}
	case 1:
		c.Message = fmt.Sprintf("Kubelet minor version (%s) on node %s", oldest, behind[0])
	case 2, 3:
		last := len(behind) - 1
		c.Message = fmt.Sprintf("Kubelet minor versions on nodes %s and %s", strings.Join(behind[:last], ", "), behind[last])
	default:
		c.Message = fmt.Sprintf("Kubelet minor versions on %d nodes", len(behind))
	}
	if len(behind) > 0 {
		c.Status, c.Reason = configv1.ConditionFalse, kubeletMinor+"_KubeletMinorVersionUnsupportedNextUpgrade"
		c.Message = kubeletMinor + "Upgradeable: " + c.Message + " will not be supported in the next OpenShift minor version upgrade."
	}
	return []openshift.Condition{c}
}
