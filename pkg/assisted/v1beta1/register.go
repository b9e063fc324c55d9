package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds of this package.
var GroupVersion = schema.GroupVersion{Group: "agent-install.openshift.io", Version: "v1beta1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Agent{}, &AgentList{}, &InfraEnv{}, &InfraEnvList{}, &NMStateConfig{}, &NMStateConfigList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
