// Package installed computes the condition Installed: the state of the installation, the hosts that block or delay it, and the workers
// that it misses. It has no client, and no clock.
package installed

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// View contains the input of the condition.
type View struct {
	*facts.Facts
	// Present are the Machines of the control plane at the end of this reconcile. They include new Machines that the cache does not
	// contain yet.
	Present []*clusterv1.Machine
	// Blocked is the condition for the blocker of the installation; nil if no phase recorded one.
	Blocked *metav1.Condition
	// Failure ended the reconcile early.
	Failure error
	Now     time.Time
}
