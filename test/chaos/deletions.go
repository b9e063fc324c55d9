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

// deletion is one that a manager asked for, and got.
type deletion struct {
	by, resource, namespace, name string
	at                            time.Time
}

// serviceAccounts are those of all managers, ours and others; gardeners are the controllers of Kubernetes, which delete
// what has lost its owner.
const (
	serviceAccounts = "system:serviceaccount:"
	gardeners       = serviceAccounts + "kube-system:"
)

// deletionsIn are those of managers. What people delete is the plan.
func deletionsIn(requests audit.Requests) []deletion {
	var found []deletion
	for _, r := range requests {
		account, manages := strings.CutPrefix(r.User, serviceAccounts)
		if !manages || strings.HasPrefix(r.User, gardeners) || !strings.HasPrefix(r.Verb, "delete") ||
			r.Code >= http.StatusMultipleChoices || r.Namespace == "" {
			continue
		}
		found = append(found, deletion{by: account, resource: r.Resource, namespace: r.Namespace, name: r.Name, at: r.Time})
	}
	return found
}

// judgeDeletions holds what the managers deleted, since it was done last, against what the plan asked for.
func (r *round) judgeDeletions() error {
	f := r.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	requests, err := r.audit.Next() // under the lock: several may look, and what was asked for must not change meanwhile
	for _, d := range deletionsIn(requests) {
		f.checked[deletionRule]++
		if !f.census(d.namespace).isAsked(d) {
			f.report(deletionRule, fmt.Sprintf("%s deleted %s %s/%s, which nobody had asked for", d.by, d.resource, d.namespace, d.name))
		}
	}
	return err
}

// isAsked reports whether the plan asked for what a manager deleted.
func (c *census) isAsked(d deletion) bool {
	if c.leaving {
		return true
	}
	ours := slices.Contains(slices.Collect(maps.Values(accounts)), d.by)
	switch d.resource {
	case "machines":
		return c.mayGo(d)
	case "metal3machines", "openshiftassistedconfigs", "infraenvs":
		// Of a Machine that could not be made, what was made for it goes.
		return slices.ContainsFunc(c.lives(d.name, d.at), wasAsked) || d.name != "" && !c.ever(d.name)
	case "agents":
		machine, seen := c.infraEnvs[d.name]
		return !seen && d.name != "" || slices.ContainsFunc(c.lives(machine, d.at), wasAsked)
	case "clusterdeployments", "agentclusterinstalls":
		return c.retried
	case "secrets":
		return !ours || c.retried
	case "baremetalhosts", "clusters", "openshiftassistedcontrolplanes", "machinedeployments", "machinesets", "nmstateconfigs":
		return false
	}
	return true
}

// mayGo reports whether a Machine was to go: by its name, as one of the workers or masters of which there are to be
// fewer, which Cluster API and our control plane manager choose, or with all others of a cluster that is installed
// again.
func (c *census) mayGo(d deletion) bool {
	lives := c.lives(d.name, d.at)
	worker := d.name != "" && !slices.ContainsFunc(lives, isMaster)
	switch {
	case slices.ContainsFunc(lives, wasAsked):
		return true
	case c.retried && d.by == accounts[env.ControlPlane]:
	case c.fewerMasters > 0 && !worker && d.by == accounts[env.ControlPlane]:
		c.fewerMasters--
	case c.fewer > 0 && worker && d.by == coreAccount:
		c.fewer--
	default:
		return false
	}
	for _, l := range lives {
		l.asked = true
	}
	return true
}

// coreAccount is that of Cluster API.
const coreAccount = "capi-system:capi-manager"
