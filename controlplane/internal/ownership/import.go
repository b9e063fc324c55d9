package ownership

import "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"

// Imported reports whether the AgentClusterInstall was created for a cluster that had been installed
// elsewhere.
func Imported(f *facts.Facts) bool {
	if !OwnsInstall(f) {
		return false
	}
	_, imported := f.Install.Annotations[facts.ImportedAnnotation]
	return imported
}
