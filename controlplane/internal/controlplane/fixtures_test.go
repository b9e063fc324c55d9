package controlplane

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"
)

const (
	lab    = "lab"
	digest = "quay.io/openshift-release-dev/ocp-release@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

var infraGV = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1"}

var infraTemplate = sample.InfraTemplate

func newCluster() *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "cluster1", UID: "cluster-uid"},
		Spec: clusterv1.ClusterSpec{
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "192.168.111.5", Port: 6443},
			ControlPlaneRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: controlplanev1.GroupVersion.Group, Kind: facts.ControlPlaneKind, Name: "c1",
			},
			ClusterNetwork: clusterv1.ClusterNetwork{
				Pods:     clusterv1.NetworkRanges{CIDRBlocks: []string{"172.18.0.0/20"}},
				Services: clusterv1.NetworkRanges{CIDRBlocks: []string{"10.96.0.0/12"}},
			},
		},
		Status: clusterv1.ClusterStatus{
			Initialization: clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true)},
			FailureDomains: []clusterv1.FailureDomain{
				{Name: "rack2", ControlPlane: ptr.To(true)}, {Name: "rack1", ControlPlane: ptr.To(true)}, {Name: "rack0"},
			},
		},
	}
}

// clusterOwner returns the owner that Cluster API sets on a Machine without MachineSet and control plane.
func clusterOwner() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "cluster1", UID: "cluster-uid"}}
}

func (h *hub) controlPlane() *controlplanev1.OpenshiftAssistedControlPlane {
	h.t.Helper()
	cp := &controlplanev1.OpenshiftAssistedControlPlane{}
	h.get("c1", cp)
	return cp
}

func pullSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "pull"},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"quay.io":{"auth":"dTpw"}}}`)},
	}
}

func crd(plural, kind string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:   plural + "." + infraGV.Group,
			Labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1alpha5_v1beta1"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind}},
	}
}

// world returns the objects of a hub on which a control plane can be installed.
func world(change func(*controlplanev1.OpenshiftAssistedControlPlane)) []client.Object {
	return []client.Object{
		newCluster(), controlPlane(change), pullSecret(), infraTemplate(),
		crd("metal3machinetemplates", "Metal3MachineTemplate"), crd("metal3machines", "Metal3Machine"),
	}
}

// kubeconfigOf returns a kubeconfig with the credentials of a user.
func kubeconfigOf(user string) []byte {
	content, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "admin",
		Clusters: map[string]*clientcmdapi.Cluster{
			"c1": {Server: "https://192.168.111.5:6443", CertificateAuthorityData: []byte("authority")},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"admin": {ClientCertificateData: []byte(user), ClientKeyData: []byte("key")}},
		Contexts:  map[string]*clientcmdapi.Context{"admin": {Cluster: "c1", AuthInfo: "admin"}},
	})
	if err != nil {
		panic(err)
	}
	return content
}

// factsOf returns the facts of a hub with only the Cluster and its control plane.
func factsOf(change func(*controlplanev1.OpenshiftAssistedControlPlane)) *facts.Facts {
	return &facts.Facts{ControlPlane: controlPlane(change), Cluster: newCluster()}
}
