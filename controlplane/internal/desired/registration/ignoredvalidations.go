package registration

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// MayIgnore reports whether assisted-service accepts other ignored validations for a cluster in this state. It does so
// before the installation, and while it adds hosts (VerifyClusterUpdatability in its internal/cluster/cluster.go).
func MayIgnore(state facts.InstallationState, observed assisted.Installation) bool {
	return observed.AcceptsHosts || !observed.Registered && !state.Begun
}

// KeptIgnored returns the annotations of wanted with the ignored validations of the registered object: a request with
// these annotations does not change the ignored validations. owns reports whether the writer owns a field of the
// registered object.
func KeptIgnored(wanted, registered metav1.Object, owns func(path ...string) bool) map[string]string {
	kept := maps.Clone(wanted.GetAnnotations())
	if kept == nil {
		kept = map[string]string{}
	}
	for _, key := range assisted.IgnoredValidations() {
		delete(kept, key)
		if value, stated := registered.GetAnnotations()[key]; stated && owns("metadata", "annotations", key) {
			kept[key] = value
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}
