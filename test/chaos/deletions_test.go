package main

import (
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
)

func TestDeletionsByManagers(t *testing.T) {
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
		of("admin", "delete", 200), // a user, as the plan requests
		of(kubernetesControllers+"generic-garbage-collector", "delete", 200),
		of(core, "delete", 404), of(core, "delete", 409),
		of(core, "patch", 200),
		{User: core, Verb: "delete", Code: 200, Resource: "clusterimagesets", Name: "m"}, // shared by clusters
	})).To(BeEmpty())
}

func TestRequestedDeletions(t *testing.T) {
	controlPlane, bootstrap := accounts[env.ControlPlane], accounts[env.Bootstrap]
	for situation, tc := range map[string]struct {
		by, resource, name string
		change             func(*census)
		requested          bool
	}{
		"the Machine that was named": {
			controlPlane, "machines", "master",
			func(c *census) { c.machines["master"].requested = true }, true,
		},
		"another Machine": {
			controlPlane, "machines", "other", func(c *census) { c.machines["master"].requested = true }, false,
		},
		"a worker, scaled down":                   {coreAccount, "machines", "worker", func(c *census) { c.scaledDownWorkers = 1 }, true},
		"a worker, not scaled down":               {coreAccount, "machines", "worker", nil, false},
		"a master, while workers are scaled down": {coreAccount, "machines", "master", func(c *census) { c.scaledDownWorkers = 1 }, false},
		"a worker, deleted by our manager":        {controlPlane, "machines", "worker", func(c *census) { c.scaledDownWorkers = 1 }, false},
		"a master, scaled down":                   {controlPlane, "machines", "master", func(c *census) { c.scaledDownMasters = 1 }, true},
		"a worker, while masters are scaled down": {controlPlane, "machines", "worker", func(c *census) { c.scaledDownMasters = 1 }, false},
		"a master, deleted by Cluster API":        {coreAccount, "machines", "master", func(c *census) { c.scaledDownMasters = 1 }, false},
		"all, in another installation":            {controlPlane, "machines", "master", func(c *census) { c.retried = true }, true},
		"a Machine with the name of a deleted one": {controlPlane, "machines", "master", func(c *census) {
			c.machines["former"] = &life{name: "master", master: true, requested: true, to: time.Now().Add(-time.Minute)}
		}, false},
		"an object of a recently deleted Machine": {bootstrap, "infraenvs", "master", func(c *census) {
			delete(c.machines, "master")
			c.machines["former"] = &life{name: "master", requested: true, to: time.Now().Add(-lateness / 2)}
		}, true},
		"all at once": {
			controlPlane, "machines", "",
			func(c *census) { c.machines["master"].requested = true }, false,
		},
		"the config of a Machine that stays": {coreAccount, "openshiftassistedconfigs", "worker", nil, false},
		"the config of a Machine that is deleted": {
			coreAccount, "openshiftassistedconfigs", "worker",
			func(c *census) { c.machines["worker"].requested = true }, true,
		},
		"the infra machine of no Machine":      {coreAccount, "metal3machines", "never-made", nil, true},
		"the infra machine of a Machine":       {coreAccount, "metal3machines", "master", nil, false},
		"the InfraEnv of a Machine that stays": {bootstrap, "infraenvs", "master", nil, false},
		"the Agent of a Machine that stays":    {bootstrap, "agents", "agent", nil, false},
		"the Agent of a Machine that is deleted": {
			bootstrap, "agents", "agent",
			func(c *census) { c.machines["master"].requested = true }, true,
		},
		"the registration":                          {controlPlane, "clusterdeployments", "c", nil, false},
		"the registration, in another installation": {controlPlane, "agentclusterinstalls", "c", func(c *census) { c.retried = true }, true},
		"a kubeconfig":                              {controlPlane, "secrets", "c-kubeconfig", nil, false},
		"a BareMetalHost": {
			controlPlane, "baremetalhosts", "host", func(c *census) { c.machines["master"].requested = true }, false,
		},
		"a BareMetalHost with its cluster, by CAPM3": {"capm3-system:capm3-manager", "baremetalhosts", "host", nil, false},
		"any object of a deleted cluster":            {controlPlane, "machines", "master", func(c *census) { c.leaving = true }, true},
	} {
		t.Run(situation, func(t *testing.T) {
			c := newFollower(nil).census("chaos")
			c.machines = living(true, "master", "other")
			maps.Copy(c.machines, living(false, "worker"))
			c.infraEnvs["agent"] = "master"
			if tc.change != nil {
				tc.change(c)
			}
			NewWithT(t).Expect(c.isRequested(deletion{tc.by, tc.resource, "chaos", tc.name, time.Now()})).To(Equal(tc.requested))
		})
	}
}

func TestScaleDownByOneDeletesOneWorker(t *testing.T) {
	g := NewWithT(t)
	c := newFollower(nil).census("chaos")
	c.scaledDownWorkers, c.machines = 1, living(false, "a", "b")
	first, second := deletion{coreAccount, "machines", "chaos", "a", time.Now()}, deletion{coreAccount, "machines", "chaos", "b", time.Now()}
	g.Expect(c.isRequested(first)).To(BeTrue())
	g.Expect(c.isRequested(first)).To(BeTrue(), "its deletion may be repeated")
	g.Expect(c.isRequested(second)).To(BeFalse())
}
