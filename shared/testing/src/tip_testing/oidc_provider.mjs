// npm's oidc-provider as a process: `node oidc_provider.mjs PORT [CALLBACK]`, the latter of a console. Device flow, refresh
// tokens, JWT access tokens. Its pages are its own development pages: any name signs in with any password.
import { Provider } from 'oidc-provider'

const [port, callback] = [Number(process.argv[2]), process.argv[3]]
const issuer = `http://127.0.0.1:${port}`
const resource = 'https://tip.example'
const claims = (sub) => ({ org_id: sub.startsWith('stranger') ? 'nobody-knows-it' : 'desk', org_role: sub.startsWith('lead') ? 'admin' : 'member' })

const consoles = callback ? [{
  client_id: 'tip-console',
  client_secret: 'for-tests-only-and-long-enough',
  token_endpoint_auth_method: 'client_secret_post',
  grant_types: ['authorization_code', 'refresh_token'],
  redirect_uris: [callback],
}] : []

const provider = new Provider(issuer, {
  clients: [{
    client_id: 'tip-cli',
    client_name: 'tip',
    application_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
    redirect_uris: ['http://127.0.0.1/callback'],
  }, ...consoles],
  scopes: ['openid', 'offline_access', 'trade'],
  features: {
    deviceFlow: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: 'trade', audience: 'tip-cli', accessTokenFormat: 'jwt', accessTokenTTL: 600, jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  extraTokenClaims: (_ctx, token) => claims(token.accountId),
  findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  cookies: { keys: ['for-tests-only'] },
  issueRefreshToken: async () => true,
  pkce: { required: () => true },
})
provider.listen(port, '127.0.0.1')
