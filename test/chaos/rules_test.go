package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

func in(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "chaos", Name: name}
}

func TestAnApprovalIsProven(t *testing.T) {
	at := time.Now()
	before, after := at.Add(-time.Minute), at.Add(time.Minute)
	a := approval{agent: in("agent"), machine: in("m"), at: at}
	for situation, tc := range map[string]struct {
		known  bool
		stays  []stay
		proven bool
	}{
		"the host of the Machine": {known: true, stays: []stay{{machine: in("m"), from: before}}, proven: true},
		"given and taken while it was approved": {
			known: true,
			stays: []stay{{machine: in("m"), from: before, to: at.Add(-slack / 2)}}, proven: true,
		},
		"a server that stands behind no BareMetalHost": {},
		"a host that was given to nobody":              {known: true},
		"the host of another Machine":                  {known: true, stays: []stay{{machine: in("other"), from: before}}},
		"that of a Machine long gone": {
			known: true,
			stays: []stay{{machine: in("m"), from: before, to: before.Add(time.Second)}, {machine: in("other"), from: before.Add(2 * time.Second)}},
		},
		"one that becomes the Machine's later": {known: true, stays: []stay{{machine: in("m"), from: after}}},
	} {
		t.Run(situation, func(t *testing.T) {
			told := unproven(a, tc.known, tc.stays)
			NewWithT(t).Expect(tc.proven).To(Equal(told == ""), told)
		})
	}
}

// TestAnApprovalAgainstAClaimIsSeen: the broken twin approves a host while a copy of its BareMetalHost, or another
// config, claims its server.
func TestAnApprovalAgainstAClaimIsSeen(t *testing.T) {
	at := time.Now()
	long, short := at.Add(-2*claimSlack), at.Add(-claimSlack/2)
	a := approval{agent: in("agent"), machine: in("m"), at: at}
	own := []string{holderOfHost(in("host")), holderOfConfig(in("m"))}
	for situation, tc := range map[string]struct {
		claims []tenure
		told   string
	}{
		"nobody":          {},
		"its own objects": {claims: []tenure{{holder: own[0], from: long}, {holder: own[1], from: long}}},
		"another BareMetalHost": {
			claims: []tenure{{holder: "BareMetalHost foreign/copy", from: long}},
			told:   "claimed by BareMetalHost foreign/copy",
		},
		"until later": {
			claims: []tenure{{holder: "BareMetalHost foreign/copy", from: long, to: at.Add(2 * slack)}},
			told:   "claimed by BareMetalHost foreign/copy",
		},
		"another config": {
			claims: []tenure{{holder: "OpenshiftAssistedConfig chaos/other", from: long}},
			told:   "claimed by OpenshiftAssistedConfig chaos/other",
		},
		"another one, just now":         {claims: []tenure{{holder: "BareMetalHost foreign/copy", from: short}}},
		"another one, until before":     {claims: []tenure{{holder: "BareMetalHost foreign/copy", from: long, to: at.Add(-time.Second)}}},
		"another one, until the moment": {claims: []tenure{{holder: "BareMetalHost foreign/copy", from: long, to: at.Add(slack / 2)}}},
	} {
		t.Run(situation, func(t *testing.T) {
			told := contested(a, own, tc.claims)
			if tc.told == "" {
				NewWithT(t).Expect(told).To(BeEmpty())
			} else {
				NewWithT(t).Expect(told).To(ContainSubstring(tc.told))
			}
		})
	}
}

// TestClaimsAreSeen as objects come, change and go.
func TestClaimsAreSeen(t *testing.T) {
	g := NewWithT(t)
	f := newFollower(nil)
	host := &metal3api.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: "host"}}
	host.Spec.BootMACAddress, host.Spec.BMC.Address = "02:00:00:00:00:0A", "redfish://bmc"
	copied := host.DeepCopy()
	copied.Namespace, copied.Annotations = foreignNamespace, map[string]string{metal3api.DetachedAnnotation: ""}
	f.see(host, false)
	f.see(copied, false)
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: "other", UID: "other"}}
	config.Status.AgentRef = &corev1.LocalObjectReference{Name: "agent"}
	config.Status.Conditions = []metav1.Condition{{
		Type: bootstrapv1.HostInstalledCondition, Status: metav1.ConditionTrue,
		Reason: "HostInstalled",
	}}
	f.see(config, false)
	f.judgeClaims(approval{agent: in("agent"), machine: in("m"), at: time.Now().Add(2 * claimSlack)}, in("host"))
	g.Expect(f.broken).To(ConsistOf(And(HaveField("Rule", claimRule),
		HaveField("What", HaveSuffix("claimed by BareMetalHost foreign/host, OpenshiftAssistedConfig chaos/other")))))

	f = newFollower(nil)
	f.see(host, false)
	f.see(copied, false)
	f.see(copied, true)
	f.see(config, false)
	f.see(config, true)
	f.judgeClaims(approval{agent: in("agent"), machine: in("m"), at: time.Now().Add(2 * claimSlack)}, in("host"))
	g.Expect(f.broken).To(BeEmpty())
}

func TestAWaitIsTold(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	for situation, tc := range map[string]struct {
		condition metav1.Condition
		told      bool
	}{
		"well, without a message":                {condition("Ready", metav1.ConditionTrue, "HostInstalled", ""), true},
		"not well, with a message":               {condition("Ready", metav1.ConditionFalse, "WaitingForHost", "waiting"), true},
		"not well, without a message":            {condition("Ready", metav1.ConditionFalse, "WaitingForHost", ""), false},
		"not known, without a message":           {condition("Available", metav1.ConditionUnknown, "HealthUnknown", ""), false},
		"without a reason":                       {condition("Available", metav1.ConditionFalse, "", "waiting"), false},
		"a negative one that is well":            {condition("Deleting", metav1.ConditionFalse, "NotDeleting", ""), true},
		"a negative one that is not":             {condition("Deleting", metav1.ConditionTrue, "DeletingInfraEnv", ""), false},
		"a negative one that tells what it does": {condition("ScalingUp", metav1.ConditionTrue, "ScalingUp", "from 1 to 3"), true},
	} {
		t.Run(situation, func(t *testing.T) {
			missing := mute("Thing", in("a"), []metav1.Condition{tc.condition})
			NewWithT(t).Expect(tc.told).To(Equal(len(missing) == 0), "%v", missing)
		})
	}
}

// An object of which nothing comes any more has no summary all the same.
func TestASummaryIsThereAfterAWhile(t *testing.T) {
	g := NewWithT(t)
	f := newFollower(nil)
	config := func(name string, age time.Duration, conditions ...metav1.Condition) *bootstrapv1.OpenshiftAssistedConfig {
		c := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{
			Namespace: "chaos", Name: name,
			UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
		}}
		c.Status.Conditions = conditions
		return c
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "HostInstalled"}
	f.see(config("mute", 2*grace), false)
	f.see(config("young", grace/2), false) // its manager may be down
	f.see(config("well", 2*grace), false)
	f.see(config("well", 2*grace, ready), false)
	f.see(config("gone", 2*grace), false)
	f.see(config("gone", 2*grace), true)
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: config("c", 2*grace).ObjectMeta}
	controlPlane.Status.Conditions = []metav1.Condition{ready} // of a control plane it is Available
	f.see(controlPlane, false)
	f.judgeSilent()
	g.Expect(f.broken).To(ConsistOf(
		HaveField("What", "OpenshiftAssistedConfig chaos/mute has no condition Ready"),
		HaveField("What", "OpenshiftAssistedControlPlane chaos/c has no condition Available")))
}

// living are Machines that are there, by their UIDs, which are their names.
func living(master bool, names ...string) map[types.UID]*life {
	found := map[types.UID]*life{}
	for _, name := range names {
		found[types.UID(name)] = &life{name: name, master: master}
	}
	return found
}

func TestNothingIsMadeTwice(t *testing.T) {
	uids := func(names ...string) map[types.UID]string {
		found := map[types.UID]string{}
		for _, name := range names {
			found[types.UID(name)] = name
		}
		return found
	}
	for situation, tc := range map[string]struct {
		change func(*census)
		double bool
	}{
		"as many as wanted":    {func(*census) {}, false},
		"a Machine too many":   {func(c *census) { c.machines["d"] = &life{name: "d", master: true} }, true},
		"a Machine for one":    {func(c *census) { c.machines["d"], c.machines["a"].asked = &life{name: "d", master: true}, true }, false},
		"two Machines for one": {func(c *census) { maps.Copy(c.machines, living(true, "d", "e")); c.machines["a"].asked = true }, true},
		"a Machine for a worker": {func(c *census) {
			c.machines["d"], c.machines["w"] = &life{name: "d", master: true}, &life{name: "w", asked: true}
		}, true},
		"one of the name of one that was replaced": {func(c *census) {
			c.machines["a"].asked, c.machines["a2"], c.machines["d"] = true, &life{name: "a", master: true}, &life{name: "d", master: true}
		}, true},
		"while it is installed anew": {func(c *census) { maps.Copy(c.machines, living(true, "d", "e", "f")); c.retried = true }, false},
		"when it was installed anew": {func(c *census) { c.replaceAll(); maps.Copy(c.machines, living(true, "d", "e", "f")) }, false},
		"one too many for that": {
			func(c *census) { c.replaceAll(); maps.Copy(c.machines, living(true, "d", "e", "f", "g")) },
			true,
		},
		"two ClusterDeployments": {func(c *census) { c.made["ClusterDeployment"] = uids("x", "y") }, true},
		"another after somebody deleted it": {func(c *census) {
			c.made["ClusterDeployment"],
				c.excused["ClusterDeployment"] = uids("x", "y"), 1
		}, false},
		"two AgentClusterInstalls": {func(c *census) { c.made["AgentClusterInstall"] = uids("x", "y") }, true},
		"an InfraEnv too many":     {func(c *census) { c.made["InfraEnv"] = uids("a", "b", "c", "d") }, true},
		"an InfraEnv that somebody deleted": {
			func(c *census) { c.made["InfraEnv"], c.excused["InfraEnv"] = uids("a", "b", "c", "d"), 1 },
			false,
		},
		"two hosts for one Machine":            {func(c *census) { c.consumers[in("a")] = []string{"x", "y"} }, true},
		"a host that went from one to another": {func(c *census) { c.consumers[in("b")], c.consumers[in("a")] = []string{"x"}, nil }, false},
	} {
		t.Run(situation, func(t *testing.T) {
			c := newFollower(nil).census("chaos")
			c.replicas, c.machines = 3, living(true, "a", "b", "c")
			c.made["ClusterDeployment"], c.made["AgentClusterInstall"], c.made["InfraEnv"] = uids("x"), uids("x"), uids("a", "b", "c")
			tc.change(c)
			told := c.doubles("chaos")
			NewWithT(t).Expect(tc.double).To(Equal(len(told) > 0), "%v", told)
		})
	}
}

// What a cluster is forgiven that is installed again, or comes back, ends with that.
func TestWhatIsForgivenEnds(t *testing.T) {
	g, f := NewWithT(t), newFollower(nil)
	c := f.census("chaos")
	registration := deletion{by: accounts[env.ControlPlane], resource: "clusterdeployments", name: "c", at: time.Now()}
	g.Expect(c.isAsked(registration)).To(BeFalse())
	f.askAgain("chaos")
	g.Expect(c.isAsked(registration)).To(BeTrue())
	f.arrive("chaos")
	g.Expect(c.isAsked(registration)).To(BeFalse(), "it is installed")

	f.abandon("chaos")
	c.made["Metal3Machine"] = map[types.UID]string{"1": "before"}
	f.leave("chaos")
	g.Expect(c.isAsked(registration)).To(BeTrue())
	f.comeBack("chaos")
	g.Expect(c.isAsked(registration)).To(BeFalse(), "it is that of the cluster that came back")
	g.Expect(c.strays("chaos")).To(BeEmpty())
	c.made["Metal3Machine"]["2"] = "after"
	g.Expect(c.strays("chaos")).To(ConsistOf(ContainSubstring("after")))
}

// The disks of masters that are given up with their installation are wiped together.
func TestAVoterThatIsWiped(t *testing.T) {
	g, f := NewWithT(t), newFollower(nil)
	before, after := lab.WipedMember{Node: "a", Time: time.Unix(1, 0)}, lab.WipedMember{Node: "a", Time: time.Unix(2, 0)}
	f.askAgain("chaos")
	f.lose("chaos", before)
	f.arrive("chaos")
	f.lose("chaos", before)
	g.Expect(f.broken).To(BeEmpty())
	f.lose("chaos", after)
	g.Expect(f.broken).To(ConsistOf(HaveField("Rule", lossRule)))
}

// A voter leaves etcd for its own Machine, which is being deleted.
func TestAMemberIsRemovedForItsOwnMachine(t *testing.T) {
	voters := func(nodes ...string) (list []lab.EtcdMember) {
		for _, node := range nodes {
			list = append(list, lab.EtcdMember{ID: uint64(node[0]), Name: node, Voter: true})
		}
		return list
	}
	machine := func(name, node string) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: name, UID: types.UID(name)}}
		m.Status.NodeRef.Name = node
		return m
	}
	for situation, tc := range map[string]struct {
		now    []lab.EtcdMember
		change func(f *follower, a *clusterv1.Machine)
		broken bool
	}{
		"nothing is removed": {now: voters("a", "b", "c")},
		"the Machine stays":  {now: voters("b", "c"), broken: true},
		"the Machine is being deleted": {now: voters("b", "c"), change: func(f *follower, a *clusterv1.Machine) {
			a.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			f.see(a, false)
		}},
		"the Machine is gone": {now: voters("b", "c"), change: func(f *follower, a *clusterv1.Machine) { f.see(a, true) }},
		"another has its Node later": {
			now:    voters("b", "c"),
			change: func(f *follower, a *clusterv1.Machine) { f.see(a, true); f.see(machine("next", "a"), false) },
		},
		"another Machine is being deleted": {now: voters("b", "c"), change: func(f *follower, _ *clusterv1.Machine) {
			other := machine("other", "b")
			other.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			f.see(other, false)
		}, broken: true},
		"it was taken in once more":      {now: append(voters("b", "c"), lab.EtcdMember{ID: 1, Name: "a", Voter: true}), broken: true},
		"the cluster is installed again": {now: voters("b", "c"), change: func(f *follower, _ *clusterv1.Machine) { f.askAgain("chaos") }},
		"the cluster is being deleted":   {now: voters("b", "c"), change: func(f *follower, _ *clusterv1.Machine) { f.leave("chaos") }},
	} {
		t.Run(situation, func(t *testing.T) {
			g, f := NewWithT(t), newFollower(nil)
			a := machine("machine-a", "a")
			f.see(a, false)
			f.seeMembers("chaos", append(voters("a", "b", "c"), lab.EtcdMember{ID: 9, Name: "etcd-bootstrap", Voter: true}))
			f.seeMembers("chaos", tc.now)
			if tc.change != nil {
				tc.change(f, a)
			}
			f.judgeRemovals(false)
			g.Expect(f.broken).To(BeEmpty(), "what was seen of Machines may be later")
			f.judgeRemovals(true)
			if tc.broken {
				g.Expect(f.broken).To(ConsistOf(And(HaveField("Rule", memberRule),
					HaveField("What", ContainSubstring("Machine machine-a is not being deleted")))))
			} else {
				g.Expect(f.broken).To(BeEmpty())
			}
		})
	}
}

// The storm ends whatever is under way: an object may have been deleted though the answer did not come.
func TestADeletionExcusesWhatIsMadeInItsPlace(t *testing.T) {
	for situation, tc := range map[string]struct {
		answer  error
		excused int
	}{
		"it was deleted":                {nil, 1},
		"there was none":                {apierrors.NewNotFound(schema.GroupResource{Resource: "infraenvs"}, "a"), 0},
		"the storm ended before answer": {context.Canceled, 1},
		"nobody answered":               {apierrors.NewTimeoutError("etcd", 1), 1},
	} {
		t.Run(situation, func(t *testing.T) {
			g, f := NewWithT(t), newFollower(nil)
			excused := func() int { return f.census("chaos").excused["InfraEnv"] }
			err := f.excuse("chaos", []string{"InfraEnv"}, func() error {
				g.Expect(excused()).To(Equal(1), "another one may be seen before the answer")
				return tc.answer
			})
			g.Expect(errors.Is(err, tc.answer)).To(BeTrue())
			g.Expect(excused()).To(Equal(tc.excused))
		})
	}
}

func TestWhatIsMadeForNoMachine(t *testing.T) {
	g := NewWithT(t)
	c := newFollower(nil).census("chaos")
	c.machines = living(false, "a")
	c.made["OpenshiftAssistedConfig"], c.made["Metal3Machine"] = map[types.UID]string{"2": "a"}, map[types.UID]string{"3": "a"}
	g.Expect(c.strays("chaos")).To(BeEmpty())
	c.made["OpenshiftAssistedConfig"]["4"] = "b"
	g.Expect(c.strays("chaos")).To(HaveLen(1))
	c.made["Metal3Machine"]["5"] = "b"
	g.Expect(c.strays("chaos")).To(HaveLen(2))
	c.abandoned = true
	g.Expect(c.strays("chaos")).To(BeEmpty(), "the Machine was not to be made any more")
}

func TestASecretInAnObject(t *testing.T) {
	const token = "eyJhbGciOiJFUzI1NiJ9.eyJpbmZyYV9lbnZfaWQi.x"
	object := func(group, kind string, content map[string]any) *unstructured.Unstructured {
		content["apiVersion"], content["kind"] = group+"/v1", kind
		return &unstructured.Unstructured{Object: content}
	}
	conditions := func(message string) map[string]any {
		return map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"message": message}}}}
	}
	for situation, tc := range map[string]struct {
		object *unstructured.Unstructured
		told   bool
	}{
		"the password in any field": {object("bootstrap.cluster.x-k8s.io", "X",
			map[string]any{"spec": map[string]any{"x": "a" + lab.PullSecretPassword}}), true},
		"encoded": {object("agent-install.openshift.io", "X",
			map[string]any{"metadata": map[string]any{"annotations": map[string]any{"x": lab.PullSecretAuth}}}), true},
		"the password of a BMC": {object("agent-install.openshift.io", "X",
			map[string]any{"spec": map[string]any{"x": hosts.BMCPassword}}), true},
		"a token in a message": {object("bootstrap.cluster.x-k8s.io", "X", conditions("see https://x?a="+token)), true},
		"a token in an Event":  {object("", "Event", map[string]any{"message": token}), true},
		"a token in the URL that a host boots": {object("infrastructure.cluster.x-k8s.io", "Metal3Machine",
			map[string]any{"spec": map[string]any{"url": "https://x?api_key=" + token}}), false},
		"a token in what assisted-service tells": {
			object("agent-install.openshift.io", "InfraEnv", conditions("see https://x?api_key="+token)),
			false,
		},
		"nothing": {object("bootstrap.cluster.x-k8s.io", "X", conditions("all is well")), false},
	} {
		t.Run(situation, func(t *testing.T) {
			where := toldBy(tc.object)
			NewWithT(t).Expect(tc.told).To(Equal(where != ""), where)
		})
	}
}

func TestAForgedRequestIsApproved(t *testing.T) {
	request := func(name string, kind certificatesv1.RequestConditionType) certificatesv1.CertificateSigningRequest {
		r := certificatesv1.CertificateSigningRequest{}
		r.Name, r.Status.Conditions = name, []certificatesv1.CertificateSigningRequestCondition{{Type: kind, Reason: "KubeletOfMachine"}}
		return r
	}
	g, forged := NewWithT(t), map[string]string{"forged": "somebody else"}
	g.Expect(approvedOf([]certificatesv1.CertificateSigningRequest{
		request("honest", certificatesv1.CertificateApproved),
		request("forged", certificatesv1.CertificateDenied),
		{},
	}, forged)).To(BeEmpty())
	g.Expect(approvedOf([]certificatesv1.CertificateSigningRequest{request("forged", certificatesv1.CertificateApproved)},
		forged)).To(ConsistOf(ContainSubstring("for somebody else was approved")))
}

func TestALogIsReadOnce(t *testing.T) {
	g := NewWithT(t)
	path, f := filepath.Join(t.TempDir(), "manager.log"), newFollower(nil)
	write := func(text string) {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = file.WriteString(text)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(file.Close()).To(Succeed())
	}
	write("all is well\nbegun")
	end, err := f.readLog(path, 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(end).To(BeEquivalentTo(len("all is well\n")), "what is not a whole line yet comes later")
	g.Expect(f.broken).To(BeEmpty())
	write(" with " + lab.PullSecretPassword + "\nE1124 Observed a panic: nil map\n")
	_, err = f.readLog(path, end)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.broken).To(ConsistOf(HaveField("Rule", secretRule), HaveField("Rule", panicRule)))
	g.Expect(panics.MatchString("WARNING: DATA RACE\n")).To(BeTrue())
	for _, v := range f.broken {
		g.Expect(v.What).NotTo(ContainSubstring(lab.PullSecretPassword), "it is not told once more")
	}
}
