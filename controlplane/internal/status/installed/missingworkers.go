package installed

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

const (
	// creationTime is the time that Cluster API may take to create the Machines of a MachineDeployment:
	// usually seconds, for a topology some minutes.
	creationTime = 10 * time.Minute
	// maxBlocker is the number of characters of a blocker, which is foreign text, that a message quotes.
	maxBlocker = 300
)

// withMissingWorkers adds the missing worker Machines and their blockers to a wait for hosts. The wait
// becomes a problem after creationTime: the installation would wait for the workers without end.
func (v *View) withMissingWorkers(c metav1.Condition) metav1.Condition {
	var missing []string
	for _, of := range v.MissingWorkers {
		// Only the process remembers the beginning: after a restart, a reported problem stays one.
		overdue := !of.Since.IsZero() && (v.Now.Sub(of.Since) >= creationTime || v.reported(controlplanev1.WorkersNotCreatedReason))
		if of.Blocker == "" && !overdue {
			continue
		}
		blocker := of.Blocker
		if blocker == "" {
			blocker = "no condition states why, see the log of Cluster API"
		}
		missing = append(
			missing,
			fmt.Sprintf(
				"Cluster API has not created %s of %s: %s", english.Plural(int(of.Count), "Machine", ""), of.Owner, bound.Shorten(blocker, maxBlocker),
			),
		)
		if overdue {
			c.Reason = controlplanev1.WorkersNotCreatedReason
		}
	}
	if len(missing) > 0 {
		c.Message += "; " + bound.Join(missing, "MachineDeployment")
	}
	return c
}

// UntilWorkersCount returns the time until missing workers become a problem; zero: never.
func (v *View) UntilWorkersCount() time.Duration {
	var left []time.Duration
	for _, of := range v.MissingWorkers {
		if !v.Begun {
			left = append(left, creationTime-v.Now.Sub(of.Since))
		}
	}
	return condition.Soonest(left...)
}
