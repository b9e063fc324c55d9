package binding

import (
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// agentLabels returns the labels that annotations of the BareMetalHost set on the Agent; nil if there are none. A label
// of spec.agentLabels takes precedence: assisted-service has set it, and selectors may depend on it.
func agentLabels(f *facts.Facts) map[string]string {
	if f.Host == nil {
		return nil
	}
	var set map[string]string
	for key, value := range f.Host.Annotations {
		label, is := strings.CutPrefix(key, metal3.AgentLabelAnnotationPrefix)
		if _, configured := f.Config.Spec.AgentLabels[label]; !is || configured {
			continue
		}
		if set == nil {
			set = map[string]string{}
		}
		set[label] = value
	}
	return set
}
