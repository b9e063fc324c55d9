package approval

import (
	"crypto/x509"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// FuzzRequest checks that only certificates of kubelets are approved, for Nodes of the cluster's Machines.
// They contain only names and addresses of the host.
func FuzzRequest(f *testing.F) {
	worlds := []func() *world{asleep, awake, joining}
	for _, make := range worlds {
		f.Add(make().der(f))
	}
	elsewhere, renamed := awake(), awake()
	elsewhere.subject.IPAddresses = append(elsewhere.subject.IPAddresses, net.ParseIP("192.168.1.11"))
	renamed.subject.DNSNames = append(renamed.subject.DNSNames, "w1")
	f.Add(elsewhere.der(f))
	f.Add(renamed.der(f))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, der []byte) {
		g := NewWithT(t)
		for _, make := range worlds {
			w := make()
			request := w.readDER(der)
			if request == nil {
				continue
			}
			if request.Obstacle(HostsOf(w.facts, w.machines), w.nodes(), time.Now()) != "" {
				continue
			}
			parsed, err := x509.ParseCertificateRequest(der)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(parsed.Subject.CommonName).To(BeElementOf("system:node:w0", "system:node:w1"))
			g.Expect(parsed.Subject.Organization).To(Equal([]string{"system:nodes"}))
			for _, address := range parsed.IPAddresses {
				g.Expect(address.String()).To(BeElementOf("192.168.1.10", "fd00::10"))
			}
			for _, name := range parsed.DNSNames {
				g.Expect(name).To(BeElementOf("w0", "w0.local", "w0.example.com"))
			}
		}
	})
}
