package authorities

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn/conntest"
)

var today = time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)

// authorityUntil returns the certificate of an authority that expires some time after today.
func authorityUntil(t *testing.T, name string, valid time.Duration) string {
	t.Helper()
	return authorityFor(t, name, today.AddDate(-1, 0, 0), today.Add(valid))
}

// authorityFrom returns the certificate of an authority that was created some time ago.
func authorityFrom(t *testing.T, name string, created time.Time) string {
	t.Helper()
	return authorityFor(t, name, created, today.Add(time.Hour))
}

func authorityFor(t *testing.T, name string, from, until time.Time) string {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func fingerprintOf(t *testing.T, certificate string) string {
	t.Helper()
	found := certificatesIn([]byte(certificate))
	NewWithT(t).Expect(found).To(HaveLen(1))
	return fingerprint(found[0])
}

// trusting returns a kubeconfig with authorities.
func trusting(t *testing.T, authorities string, change func(*clientcmdapi.Cluster)) []byte {
	t.Helper()
	return conntest.Kubeconfig(t, "https://api.c.example.com:6443", func(config *clientcmdapi.Config) {
		c := config.Clusters["c"]
		c.InsecureSkipTLSVerify, c.CertificateAuthorityData = false, []byte(authorities)
		if change != nil {
			change(c)
		}
	})
}

// accessIn returns the cluster in a kubeconfig.
func accessIn(t *testing.T, content []byte) *clientcmdapi.Cluster {
	t.Helper()
	config, err := clientcmd.Load(content)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return config.Clusters["c"]
}

func TestMergeKeepsChangesOfTheUser(t *testing.T) {
	own, users, expired := authorityUntil(t, "cluster", time.Hour), authorityUntil(t, "user", time.Hour),
		authorityUntil(t, "expired", -time.Hour)
	byProxy := func(c *clientcmdapi.Cluster) {
		c.ProxyURL, c.TLSServerName = "http://proxy.example.com:3128", "api.internal"
	}
	moved := func(c *clientcmdapi.Cluster) { c.Server = "https://lb.example.com:6443"; byProxy(c) }
	insecure := func(c *clientcmdapi.Cluster) { c.InsecureSkipTLSVerify, c.CertificateAuthorityData = true, nil }
	for situation, tc := range map[string]struct {
		published []byte
		same      bool
		want      func(*clientcmdapi.Cluster)
	}{
		"nothing was added":                   {published: trusting(t, own, nil), same: true},
		"what was published is no kubeconfig": {published: []byte("nothing"), same: true},
		"an authority": {trusting(t, own+users, nil), true, func(c *clientcmdapi.Cluster) {
			c.CertificateAuthorityData = []byte(own +
				users)
		}},
		"an authority in the place of another": {
			trusting(t, users, nil), true,
			func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = []byte(own + users) },
		},
		"an authority that has expired": {published: trusting(t, own+expired, nil), same: true},
		"proxy and name":                {trusting(t, own, byProxy), true, byProxy},
		"another server":                {trusting(t, own, moved), true, moved},
		"no authority, so that the system's count": {
			trusting(t, "", nil), true,
			func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = nil },
		},
		"no verification": {trusting(t, "", insecure), true, insecure},
		"assisted-service has another: authority": {
			trusting(t, own+users, nil), false,
			func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = []byte(own + users) },
		},
		"assisted-service has another: proxy and name":  {trusting(t, own, byProxy), false, byProxy},
		"assisted-service has another: its server wins": {trusting(t, own, moved), false, byProxy},
		"assisted-service has another: it is verified":  {published: trusting(t, "", insecure), same: false},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			source := conntest.Kubeconfig(t, "", func(config *clientcmdapi.Config) {
				config.Clusters["c"] = &clientcmdapi.Cluster{
					Server:                   "https://api.c.example.com:6443",
					CertificateAuthorityData: []byte(own),
				}
				config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: "of assisted-service"}
			})
			result, err := MergeChanges(tc.published, source, tc.same, today)
			g.Expect(err).NotTo(HaveOccurred())
			config, err := clientcmd.Load(result)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.AuthInfos["admin"].Token).To(Equal("of assisted-service"))
			if tc.want == nil {
				g.Expect(result).To(Equal(source))
				return
			}
			want := accessIn(t, source)
			tc.want(want)
			g.Expect(accessIn(t, result)).To(Equal(want))
		})
	}
	_, err := MergeChanges(nil, []byte("nothing"), true, today)
	NewWithT(t).Expect(err).To(HaveOccurred())
}

func TestAuthoritiesAreAddedOnce(t *testing.T) {
	g := NewWithT(t)
	own, next, expired := authorityUntil(t, "cluster", time.Hour), authorityUntil(t, "next", time.Hour),
		authorityUntil(t, "expired", -time.Hour)
	added := func(content []byte, bundles ...string) string {
		var all [][]byte
		for _, bundle := range bundles {
			all = append(all, []byte(bundle))
		}
		result, err := Update(content, today, Trust{Cluster: &Observed{Reported: bytes.Join(all, nil)}})
		g.Expect(err).NotTo(HaveOccurred())
		return string(accessIn(t, result.Kubeconfig).CertificateAuthorityData)
	}
	g.Expect(added(trusting(t, own, nil), own+next, next)).To(Equal(own + next))
	g.Expect(added(trusting(t, own+expired, nil), next)).To(Equal(own+next), "expired certificates are dropped with a change")
	g.Expect(added(trusting(t, own+expired, nil), own, expired)).To(Equal(own + expired))
	g.Expect(added(trusting(t, own, nil), "no certificate", "")).To(Equal(own))
	g.Expect(added(trusting(t, "", nil), next)).To(BeEmpty(), "the authorities of the system apply")
	g.Expect(added(trusting(t, own, nil), strings.Repeat(" ", maxBundle)+next)).To(Equal(own))
}

// A cluster created many authorities, and the user added one long ago.
func TestOldestAuthoritiesAreDropped(t *testing.T) {
	var reported []string
	for i := range maxAuthorities - 3 {
		reported = append(reported, authorityUntil(t, "reported"+strconv.Itoa(i), time.Hour))
	}
	oldest, old, used, stated := authorityFrom(t, "oldest", today.AddDate(-9, 0, 0)), authorityFrom(t, "old", today.AddDate(-8, 0, 0)),
		authorityFrom(t, "used", today.AddDate(-10, 0, 0)), authorityFrom(t, "stated", today.AddDate(-10, 0, 0))
	next := authorityUntil(t, "next", time.Hour)
	cluster := &Observed{Reported: []byte(strings.Join(reported, "") + next), Serving: sets.New(fingerprintOf(t, used))}
	before := oldest + old + used + strings.Join(reported, "")
	result, err := Update(trusting(t, before, nil), today, Trust{Stated: []byte(stated), Cluster: cluster})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(accessIn(t, result.Kubeconfig).CertificateAuthorityData)).To(Equal(used + strings.Join(reported, "") + stated + next))

	result, err = Update(trusting(t, before, nil), today, Trust{Stated: []byte(stated + next)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(accessIn(t, result.Kubeconfig).CertificateAuthorityData)).To(Equal(before+stated+next),
		"the authority that the API server needs is unknown")

	replaced, err := MergeChanges(trusting(t, before, nil), trusting(t, next+stated, nil), true, today)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(accessIn(t, replaced).CertificateAuthorityData)).To(Equal(next + stated + before))
}

func TestAuthoritiesOfTheSpec(t *testing.T) {
	own, stated, other, expired := authorityUntil(t, "cluster", time.Hour), authorityUntil(t, "stated", time.Hour),
		authorityUntil(t, "other", time.Hour), authorityUntil(t, "expired", -time.Hour)
	is := fingerprintOf(t, stated)
	connected := &Observed{Reported: []byte(own)}
	for situation, tc := range map[string]struct {
		before  string
		trust   Trust
		after   string
		added   []string
		pending bool
	}{
		"stated":                   {before: own, trust: Trust{Stated: []byte(stated)}, after: own + stated, added: []string{is}},
		"stated, and known before": {before: own + stated, trust: Trust{Stated: []byte(stated)}, after: own + stated},
		"stated still": {before: own + stated, trust: Trust{Stated: []byte(stated), Added: sets.New(is), Cluster: connected}, after: own +
			stated, added: []string{is}},
		"stated still, and reported by the cluster": {before: own + stated, trust: Trust{
			Stated: []byte(stated), Added: sets.New(is),
			Cluster: &Observed{Reported: []byte(own + stated)},
		}, after: own + stated},
		"stated, and reported by the cluster": {before: own, trust: Trust{
			Stated:  []byte(stated),
			Cluster: &Observed{Reported: []byte(own + stated)},
		}, after: own + stated},
		"stated, though it has expired": {before: own, trust: Trust{Stated: []byte(expired)}, after: own},
		"withdrawn":                     {before: own + stated, trust: Trust{Added: sets.New(is), Cluster: connected, Settled: true}, after: own},
		"another in its place": {before: own + stated, trust: Trust{
			Stated: []byte(other), Added: sets.New(is), Cluster: connected,
			Settled: true,
		}, after: own + other, added: []string{fingerprintOf(t, other)}},
		"withdrawn a moment ago": {
			before: own + stated, trust: Trust{Added: sets.New(is), Cluster: connected}, after: own + stated,
			added: []string{is}, pending: true,
		},
		"another in its place a moment ago": {before: own + stated, trust: Trust{
			Stated: []byte(other), Added: sets.New(is),
			Cluster: connected,
		}, after: own + stated + other, added: []string{is, fingerprintOf(t, other)}, pending: true},
		"withdrawn long ago, without connection": {before: own + stated, trust: Trust{Added: sets.New(is), Settled: true}, after: own +
			stated, added: []string{is}, pending: true},
		"withdrawn, and added by the user": {before: own + stated, trust: Trust{Cluster: connected}, after: own + stated},
		"withdrawn, and reported by the cluster": {before: own + stated, trust: Trust{
			Added:   sets.New(is),
			Cluster: &Observed{Reported: []byte(own + stated)},
		}, after: own + stated},
		"withdrawn, and the server needs it": {before: own + stated, trust: Trust{
			Added:   sets.New(is),
			Cluster: &Observed{Serving: sets.New(is)}, Settled: true,
		}, after: own + stated, added: []string{is}},
		"withdrawn without connection": {
			before: own + stated, trust: Trust{Added: sets.New(is)}, after: own + stated,
			added:   []string{is},
			pending: true,
		},
		"another in its place, without connection": {
			before: own + stated, trust: Trust{Stated: []byte(other), Added: sets.New(is)},
			after: own + stated + other, added: []string{is, fingerprintOf(t, other)}, pending: true,
		},
		"withdrawn, and it is the only one": {
			before: stated, trust: Trust{Added: sets.New(is), Cluster: &Observed{}, Settled: true},
			after: stated,
		},
		"the system's authorities are to count":     {before: "", trust: Trust{Stated: []byte(stated)}, after: ""},
		"what is in the kubeconfig cannot be read ": {before: "nothing", trust: Trust{Stated: []byte(stated)}, after: "nothing"},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			result, err := Update(trusting(t, tc.before, nil), today, tc.trust)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(accessIn(t, result.Kubeconfig).CertificateAuthorityData)).To(Equal(tc.after))
			g.Expect(result.Added.UnsortedList()).To(ConsistOf(tc.added))
			g.Expect(result.Pending).To(Equal(tc.pending))
		})
	}
	_, err := Update([]byte("nothing"), today, Trust{})
	NewWithT(t).Expect(err).To(HaveOccurred())
}

func TestNamesOfAuthorities(t *testing.T) {
	g := NewWithT(t)
	first, second := authorityUntil(t, "first", time.Hour), authorityUntil(t, strings.Repeat("long", 100), time.Hour)
	kubeconfig := trusting(t, first+second, nil)
	g.Expect(Names(kubeconfig, Fingerprints(first))).
		To(ConsistOf("CN=first (SHA-256 " + fingerprintOf(t, first)[:16] + "...)"))
	g.Expect(Names(kubeconfig, Fingerprints(second))).To(ConsistOf(HaveLen(len("... (SHA-256 ...)") - 3 + 64 + 16)))
	g.Expect(Names(kubeconfig, sets.New("of another"))).To(BeEmpty())
	g.Expect(Names([]byte("nothing"), Fingerprints(first))).To(BeEmpty())
}

func TestCheckAuthorities(t *testing.T) {
	g := NewWithT(t)
	valid := authorityUntil(t, "a", time.Hour)
	g.Expect(Check("")).To(Succeed())
	g.Expect(Check(valid + "\n" + valid)).To(Succeed())
	g.Expect(Check(valid +
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")).To(MatchError("certificate 2 of " +
		"spec.kubeconfig.additionalTrustBundle cannot be parsed"))
	g.Expect(Check("-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n")).To(MatchError("certificate 1 of " +
		"spec.kubeconfig.additionalTrustBundle is not a PEM certificate"))
	g.Expect(Check(strings.ReplaceAll(valid, "CERTIFICATE",
		"PRIVATE KEY"))).To(MatchError("certificate 1 of spec.kubeconfig.additionalTrustBundle is not a PEM certificate"))
}

// accepted returns a connection that an authority accepted.
func accepted(t *testing.T, authority string) tls.ConnectionState {
	t.Helper()
	return tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Raw: []byte("leaf")}, certificatesIn([]byte(authority))[0]}}}
}

// API servers alternate, and present certificates of two authorities.
func TestAuthorityIsInUseAfterConnection(t *testing.T) {
	g := NewWithT(t)
	clk := testingclock.NewFakePassiveClock(today)
	s := NewServing(clk)
	former, next := authorityUntil(t, "former", time.Hour), authorityUntil(t, "next", time.Hour)
	g.Expect(s.Record(accepted(t, former))).To(Succeed())
	clk.SetTime(clk.Now().Add(time.Hour))
	g.Expect(s.Record(accepted(t, next))).To(Succeed())
	g.Expect(s.Fingerprints().UnsortedList()).To(ConsistOf(fingerprintOf(t, former), fingerprintOf(t, next)))
	clk.SetTime(today.Add(servingMemory))
	g.Expect(s.Fingerprints().Has(fingerprintOf(t, former))).To(BeTrue())
	clk.SetTime(clk.Now().Add(time.Second))
	g.Expect(s.Fingerprints().UnsortedList()).To(ConsistOf(fingerprintOf(t, next)))
	g.Expect(s.Record(tls.ConnectionState{})).To(Succeed(), "nothing is verified")
	g.Expect(s.roots).To(HaveLen(1), "unused authorities are dropped")
	g.Expect(s.began).To(Equal(today))
}

func TestAuthorityOfFirstConnectionIsInUseAtLast(t *testing.T) {
	g := NewWithT(t)
	clk := testingclock.NewFakePassiveClock(today)
	s := NewServing(clk)
	former, next := authorityUntil(t, "former", time.Hour), authorityUntil(t, "next", time.Hour)
	g.Expect(s.Record(accepted(t, former))).To(Succeed())
	for range WithdrawalChecks - 1 {
		clk.SetTime(clk.Now().Add(WithdrawalInterval + time.Second)) // no connection is opened at once
		g.Expect(s.Record(accepted(t, next))).To(Succeed())
	}
	g.Expect(s.Fingerprints().Has(fingerprintOf(t, former))).To(BeTrue())
}
