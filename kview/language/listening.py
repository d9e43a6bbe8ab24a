"""Who can reach a simulated cluster that listens on more than the loopback interface, in words."""

OPEN = (
    "warning: everybody who can connect to {address} and the ports of the other brokers can read, change and"
    " delete everything in this cluster. Nothing protects it, unless you add --security sasl_ssl"
)
WITHOUT_USERS = (
    "warning: everybody who can connect to {address} and the ports of the other brokers can read, change and"
    " delete everything in this cluster. --security ssl encrypts connections, and asks nobody who they are:"
    " mtls and sasl_ssl do"
)
WITH_USERS = (
    "warning: other machines can connect to {address} and the ports of the other brokers; --security keeps"
    " out everybody without a login or certificate"
)
HTTP = (
    "warning: other machines can connect to {url}; its token keeps others out, and is sent without encryption"
)
