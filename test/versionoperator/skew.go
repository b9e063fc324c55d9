package versionoperator

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	kubeAPIServer = "kube-apiserver"
	// kubeletMinor is what the kube-apiserver operator puts before its reason and its words about kubelets.
	kubeletMinor = "KubeletMinorVersion"
)

// tolerated is by how many minor versions of Kubernetes a kubelet may be behind the kube-apiserver of a release: an
// even 4.y is reached from the even one before it (EUS), with the kubelets of that (kube-apiserver operator).
func tolerated(release semver.Version) uint64 {
	switch {
	case release.Major >= 5:
		return min(release.Minor+1, 3)
	case release.Minor%2 == 0:
		return 2
	}
	return 1
}

// kubeletsBehind are the Nodes whose kubelets the kube-apiserver of the next minor version would not take.
func (v *view) kubeletsBehind(runs semver.Version) (behind []string, oldest string) {
	next := semver.Version{Major: runs.Major, Minor: runs.Minor + 1}
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

// kubeletFindings keep a cluster at its minor version as long as kubelets would be too old for the next one: those of
// the Nodes of a pool that is paused, for example.
func (v *view) kubeletFindings(operator *configv1.ClusterOperator) []finding {
	runs, err := semver.Parse(operatorVersion(operator))
	if err != nil {
		return nil
	}
	f := finding{Type: string(configv1.OperatorUpgradeable), Status: metav1.ConditionTrue, Reason: "AsExpected"}
	behind, oldest := v.kubeletsBehind(runs)
	switch len(behind) {
	case 0:
		told := operatorCondition(operator, configv1.OperatorUpgradeable)
		if told == nil || !strings.HasPrefix(told.Reason, kubeletMinor) {
			return nil
		}
	case 1:
		f.Message = fmt.Sprintf("Kubelet minor version (%s) on node %s", oldest, behind[0])
	case 2, 3:
		last := len(behind) - 1
		f.Message = fmt.Sprintf("Kubelet minor versions on nodes %s and %s", strings.Join(behind[:last], ", "), behind[last])
	default:
		f.Message = fmt.Sprintf("Kubelet minor versions on %d nodes", len(behind))
	}
	if len(behind) > 0 {
		f.Status, f.Reason = metav1.ConditionFalse, kubeletMinor+"_KubeletMinorVersionUnsupportedNextUpgrade"
		f.Message = kubeletMinor + "Upgradeable: " + f.Message + " will not be supported in the next OpenShift minor version upgrade."
	}
	return []finding{f}
}
