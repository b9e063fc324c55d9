package status

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

const (
	// creationTime is how long Cluster API may take to create the Machines of a MachineDeployment: it takes seconds,
	// and a topology some minutes.
	creationTime = 10 * time.Minute
	// maxBlocker is how much of a blocker, which is foreign text, a message quotes.
	maxBlocker = 300
)

// withMissingWorkers adds to a wait for hosts which worker Machines do not exist, and why. It turns into a problem when
// it lasts: the installation would wait for them without end.
func (v *View) withMissingWorkers(c metav1.Condition) metav1.Condition {
	var missing []string
	for _, of := range v.MissingWorkers {
		overdue := !of.Since.IsZero() && v.Now.Sub(of.Since) >= creationTime
		if of.Blocker == "" && !overdue {
			continue
		}
		blocker := of.Blocker
		if blocker == "" {
			blocker = "no condition states why, see the log of Cluster API"
		}
		missing = append(missing, fmt.Sprintf("Cluster API has not created %s of %s: %s", english.Plural(int(of.Count), "Machine", ""), of.Owner, bound.Shorten(blocker, maxBlocker)))
		if overdue {
			c.Reason = controlplanev1.WorkersNotCreatedReason
		}
	}
	if len(missing) > 0 {
		c.Message += "; " + bound.Join(missing, "MachineDeployment")
	}
	return c
}

// untilWorkersCount is after what time missing workers become a problem; zero: never.
func (v *View) untilWorkersCount() time.Duration {
	var left []time.Duration
	for _, of := range v.MissingWorkers {
		if !v.Begun {
			left = append(left, creationTime-v.Now.Sub(of.Since))
		}
	}
	return soonest(left...)
}
