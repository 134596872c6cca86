//! What an application at a client does in a turn: the client of a flow, or a browser.

use lastbyte_congestion::Time;
use lastbyte_engine::Datagram;
use lastbyte_quic::connection::{Connection, Event};

/// The application at a client [`Node`](crate::node::Node).
pub(crate) trait ClientApplication {
    /// When it must run next, if no event happens before.
    fn deadline(&self) -> Option<Time>;

    /// Returns whether it is time to connect or to send requests, and clears the timer.
    fn take_wakeup(&mut self, now: Time) -> bool;

    /// Called when the connection starts. With 0-RTT, requests are sent at once.
    fn on_connection_started(&mut self, now: Time, connection: &mut Connection);

    /// Sends the requests that are due.
    fn send_requests(&mut self, now: Time, connection: &mut Connection);

    /// Passes a datagram to the connection.
    fn receive(&mut self, now: Time, connection: &mut Connection, datagram: Datagram<'_>);

    /// Handles an event of the connection.
    fn on_event(&mut self, now: Time, connection: &mut Connection, event: &Event);

    /// Processes what has arrived.
    fn process_events(&mut self, now: Time, connection: &mut Connection);
}
