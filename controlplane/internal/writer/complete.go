package writer

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// Complete returns an AgentClusterInstall with the NTP servers that its Go type lacks: see assisted.WithNTPSources. It
// returns any other object unchanged.
func Complete(obj client.Object) (client.Object, error) {
	install, is := obj.(*hiveext.AgentClusterInstall)
	if !is {
		return obj, nil
	}
	if u, err := assisted.WithNTPSources(install); u != nil || err != nil {
		return u, err
	}
	return obj, nil
}

// completeObserved is Complete for an object of the cache, which lacks the NTP servers. Only the managed fields show that
// the AgentClusterInstall still has them. An assisted-service that does not know the field drops it with each update. It
// keeps the annotation.
func (w *Writer) completeObserved(obj client.Object) (client.Object, error) {
	if kube.IsNil(obj) || !w.Applier.Owns(obj, "spec", "ntpSources") {
		return obj, nil
	}
	return Complete(obj)
}
