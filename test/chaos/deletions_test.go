package main

import (
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
)

func TestWhoDeletesWhat(t *testing.T) {
	g, at := NewWithT(t), time.Now()
	of := func(user, verb string, code int) audit.Request {
		return audit.Request{User: user, Verb: verb, Code: code, Resource: "machines", Namespace: "chaos", Name: "m", Time: at}
	}
	core := serviceAccounts + coreAccount
	g.Expect(deletionsIn(audit.Requests{of(core, "delete", 200)})).To(Equal([]deletion{{
		by: coreAccount, resource: "machines",
		namespace: "chaos", name: "m", at: at,
	}}))
	g.Expect(deletionsIn(audit.Requests{of(core, "deletecollection", 200)})).To(HaveLen(1))
	g.Expect(deletionsIn(audit.Requests{
		of("admin", "delete", 200), // somebody: that is the plan
		of(gardeners+"generic-garbage-collector", "delete", 200),
		of(core, "delete", 404), of(core, "delete", 409),
		of(core, "patch", 200),
		{User: core, Verb: "delete", Code: 200, Resource: "clusterimagesets", Name: "m"}, // of no cluster alone
	})).To(BeEmpty())
}

func TestADeletionIsAskedFor(t *testing.T) {
	controlPlane, bootstrap := accounts[env.ControlPlane], accounts[env.Bootstrap]
	for situation, tc := range map[string]struct {
		by, resource, name string
		change             func(*census)
		asked              bool
	}{
		"the Machine that was named": {
			controlPlane, "machines", "master",
			func(c *census) { c.machines["master"].asked = true }, true,
		},
		"another one": {controlPlane, "machines", "other", func(c *census) { c.machines["master"].asked = true }, false},
		"a worker, of which there are to be fewer":     {coreAccount, "machines", "worker", func(c *census) { c.fewer = 1 }, true},
		"a worker, as many as ever":                    {coreAccount, "machines", "worker", nil, false},
		"a master, when there are to be fewer workers": {coreAccount, "machines", "master", func(c *census) { c.fewer = 1 }, false},
		"a worker that our own manager takes":          {controlPlane, "machines", "worker", func(c *census) { c.fewer = 1 }, false},
		"a master, of which there are to be fewer":     {controlPlane, "machines", "master", func(c *census) { c.fewerMasters = 1 }, true},
		"a worker, when there are to be fewer masters": {controlPlane, "machines", "worker", func(c *census) { c.fewerMasters = 1 }, false},
		"a master that Cluster API takes":              {coreAccount, "machines", "master", func(c *census) { c.fewerMasters = 1 }, false},
		"all of an installation anew":                  {controlPlane, "machines", "master", func(c *census) { c.retried = true }, true},
		"one of the name of one that went": {controlPlane, "machines", "master", func(c *census) {
			c.machines["former"] = &life{name: "master", master: true, asked: true, to: time.Now().Add(-time.Minute)}
		}, false},
		"what is late of one that went": {bootstrap, "infraenvs", "master", func(c *census) {
			delete(c.machines, "master")
			c.machines["former"] = &life{name: "master", asked: true, to: time.Now().Add(-lateness / 2)}
		}, true},
		"all at once": {
			controlPlane, "machines", "",
			func(c *census) { c.machines["master"].asked = true }, false,
		},
		"the config of a Machine that stays": {coreAccount, "openshiftassistedconfigs", "worker", nil, false},
		"that of one that goes": {
			coreAccount, "openshiftassistedconfigs", "worker",
			func(c *census) { c.machines["worker"].asked = true }, true,
		},
		"the infra machine of no Machine":      {coreAccount, "metal3machines", "never-made", nil, true},
		"the infra machine of a Machine":       {coreAccount, "metal3machines", "master", nil, false},
		"the InfraEnv of a Machine that stays": {bootstrap, "infraenvs", "master", nil, false},
		"the Agent of a Machine that stays":    {bootstrap, "agents", "agent", nil, false},
		"the Agent of one that goes": {
			bootstrap, "agents", "agent",
			func(c *census) { c.machines["master"].asked = true }, true,
		},
		"the registration":       {controlPlane, "clusterdeployments", "c", nil, false},
		"the registration, anew": {controlPlane, "agentclusterinstalls", "c", func(c *census) { c.retried = true }, true},
		"a kubeconfig":           {controlPlane, "secrets", "c-kubeconfig", nil, false},
		"a BareMetalHost":        {controlPlane, "baremetalhosts", "host", func(c *census) { c.machines["master"].asked = true }, false},
		"a BareMetalHost with its cluster, by somebody": {"capm3-system:capm3-manager", "baremetalhosts", "host", nil, false},
		"anything of a cluster that was deleted":        {controlPlane, "machines", "master", func(c *census) { c.leaving = true }, true},
	} {
		t.Run(situation, func(t *testing.T) {
			c := newFollower(nil).census("chaos")
			c.machines = living(true, "master", "other")
			maps.Copy(c.machines, living(false, "worker"))
			c.infraEnvs["agent"] = "master"
			if tc.change != nil {
				tc.change(c)
			}
			NewWithT(t).Expect(c.isAsked(deletion{tc.by, tc.resource, "chaos", tc.name, time.Now()})).To(Equal(tc.asked))
		})
	}
}

func TestOneWorkerLessIsOne(t *testing.T) {
	g := NewWithT(t)
	c := newFollower(nil).census("chaos")
	c.fewer, c.machines = 1, living(false, "a", "b")
	first, second := deletion{coreAccount, "machines", "chaos", "a", time.Now()}, deletion{coreAccount, "machines", "chaos", "b", time.Now()}
	g.Expect(c.isAsked(first)).To(BeTrue())
	g.Expect(c.isAsked(first)).To(BeTrue(), "it is asked for again until it is gone")
	g.Expect(c.isAsked(second)).To(BeFalse())
}
