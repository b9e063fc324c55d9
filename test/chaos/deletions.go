package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
)

// deletion is a successful deletion by a manager.
type deletion struct {
	by, resource, namespace, name string
	at                            time.Time
}

// serviceAccounts is the prefix of all managers, ours and foreign; gardeners is the prefix of the controllers of
// Kubernetes, which delete objects without an owner.
const (
	serviceAccounts       = "system:serviceaccount:"
	kubernetesControllers = serviceAccounts + "kube-system:"
)

// deletionsIn returns the deletions by managers. Deletions by users are part of the plan.
func deletionsIn(requests audit.Requests) []deletion {
	var found []deletion
	for _, r := range requests {
		account, manages := strings.CutPrefix(r.User, serviceAccounts)
		if !manages || strings.HasPrefix(r.User, kubernetesControllers) || !strings.HasPrefix(r.Verb, "delete") ||
			r.Code >= http.StatusMultipleChoices || r.Namespace == "" {
			continue
		}
		found = append(found, deletion{by: account, resource: r.Resource, namespace: r.Namespace, name: r.Name, at: r.Time})
	}
	return found
}

// judgeDeletions compares the deletions by the managers since the last call with the plan.
func (r *round) judgeDeletions() error {
	f := r.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	requests, err := r.audit.Next() // under the lock: callers are concurrent, and the plan must not change meanwhile
	for _, d := range deletionsIn(requests) {
		f.checked[deletionRule]++
		if !f.census(d.namespace).isRequested(d) {
			f.report(deletionRule, fmt.Sprintf("%s deleted %s %s/%s without a request", d.by, d.resource, d.namespace, d.name))
		}
	}
	return err
}

// isRequested reports whether the plan requested a deletion.
func (c *census) isRequested(d deletion) bool {
	if c.leaving {
		return true
	}
	ours := slices.Contains(slices.Collect(maps.Values(accounts)), d.by)
	switch d.resource {
	case "machines":
		return c.mayBeDeleted(d)
	case "metal3machines", "openshiftassistedconfigs", "infraenvs":
		// The objects of a Machine that could not be created are deleted.
		return slices.ContainsFunc(c.lives(d.name, d.at), isDeletionRequested) || d.name != "" && !c.everExisted(d.name)
	case "agents":
		machine, seen := c.infraEnvs[d.name]
		return !seen && d.name != "" || slices.ContainsFunc(c.lives(machine, d.at), isDeletionRequested)
	case "clusterdeployments", "agentclusterinstalls":
		return c.retried
	case "secrets":
		return !ours || c.retried
	case "baremetalhosts", "clusters", "openshiftassistedcontrolplanes", "machinedeployments", "machinesets", "nmstateconfigs":
		return false
	}
	return true
}

// mayBeDeleted reports whether a Machine was to be deleted. The plan names it, or requests fewer workers or masters,
// which Cluster API and our control plane manager choose. If a cluster is installed again, all its Machines are
// deleted.
func (c *census) mayBeDeleted(d deletion) bool {
	lives := c.lives(d.name, d.at)
	worker := d.name != "" && !slices.ContainsFunc(lives, isMaster)
	switch {
	case slices.ContainsFunc(lives, isDeletionRequested):
		return true
	case c.retried && d.by == accounts[env.ControlPlane]:
	case c.scaledDownMasters > 0 && !worker && d.by == accounts[env.ControlPlane]:
		c.scaledDownMasters--
	case c.scaledDownWorkers > 0 && worker && d.by == coreAccount:
		c.scaledDownWorkers--
	default:
		return false
	}
	for _, l := range lives {
		l.requested = true
	}
	return true
}

// coreAccount is the ServiceAccount of Cluster API.
const coreAccount = "capi-system:capi-manager"
