package inplace

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

func TestGenerateUpgradePlan(t *testing.T) {
	g := NewWithT(t)
	request := &hooksv1.GenerateUpgradePlanRequest{
		FromControlPlaneKubernetesVersion: "v1.31.2", FromWorkersKubernetesVersion: "v1.31.2", ToKubernetesVersion: "v1.33.5",
	}
	request.Cluster.Spec.Topology.Variables = []clusterv1.ClusterVariable{
		{Name: "map", Value: apiextensionsv1.JSON{Raw: []byte(`{"v1.32.7":"4.19.10","v1.33.5":"4.20.8"}`)}},
	}
	request.SetSettings(map[string]string{"releasesVariable": "map"})
	call := func() *hooksv1.GenerateUpgradePlanResponse {
		response := &hooksv1.GenerateUpgradePlanResponse{}
		(&Extension{}).GenerateUpgradePlan(t.Context(), request, response)
		return response
	}
	each := []hooksv1.UpgradeStep{{Version: "v1.32.7"}, {Version: "v1.33.5"}}
	response := call()
	g.Expect(response.Status).To(Equal(hooksv1.ResponseStatusSuccess))
	g.Expect(response.ControlPlaneUpgrades).To(Equal(each))
	g.Expect(response.WorkersUpgrades).To(Equal(each))

	request.Cluster.Name = strings.Repeat("c", bound.MessageBytes)
	request.Settings["releasesVariable"] = "another"
	response = call()
	g.Expect(response.Status).To(Equal(hooksv1.ResponseStatusFailure))
	g.Expect(response.Message).To(ContainSubstring("variable another of Cluster"))
	g.Expect(len(response.Message)).To(BeNumerically("<=", bound.MessageBytes))
	g.Expect(response.ControlPlaneUpgrades).To(BeEmpty())
}
