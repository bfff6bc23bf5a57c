"""What is kept of code: signatures and types of any language, and none of the bodies.

Each sample is code with a mark before every line: `+` must be kept, `-` must be dropped, `.` may be either
(a brace, an end).
"""

from __future__ import annotations

import pytest

from tenuto.knowledge.condense.declarations import find_declarations

SAMPLES = {
    "typescript": """
- import { Thing } from './thing';
+ export interface User {
+   readonly id: string;
+   address?: { street: string; zip: string };
+   rename(to: string): void;
+ }
+ export type Result<T> =
+   | { ok: true; value: T }
+   | { ok: false; error: Error };
+ export const enum Mode { On, Off }
+ export async function load<T extends User>(
+   id: string,
+   options: LoadOptions = {},
+ ): Promise<Result<T>> {
-   const response = await fetch(`/users/${id}`);
-   if (!response.ok) {
-     return { ok: false, error: new Error('no') };
-   }
-   return { ok: true, value: await response.json() };
. }
+ export const double = (n: number): number => n * 2;
+ export const MAX_RETRIES = 3;
- const local = load('1');
- console.log(local);
+ export class Store implements Repo {
+   private items = new Map<string, User>();
+   constructor(private readonly clock: Clock) {}
+   get(id: string): User | undefined {
-     return this.items.get(id);
.   }
+   delete(id: string): boolean {
-     return this.items.delete(id);
.   }
. }
+ export const schema = z.object({
+   id: z.string(),
+ });
""",
    "tsx": """
+ interface Props {
+   title: string;
+   onClose: () => void;
+ }
+ export function Modal({ title, onClose }: Props): JSX.Element {
-   const [open, setOpen] = useState(false);
-   return <div onClick={onClose}>{title}</div>;
. }
+ export const Badge: React.FC<{ count: number }> = ({ count }) => {
-   return <b>{count}</b>;
. };
""",
    "python": """
- import os
- from typing import Protocol
+ Json = dict[str, "Json"]
+ LIMIT: int = 10
+ @dataclass(frozen=True)
+ class Point:
-     "A place."
+     x: float
+     y: float = 0.0
+     @property
+     def length(self) -> float:
-         return math.hypot(self.x, self.y)
+ class Reader(Protocol):
+     def read(self, size: int = -1) -> bytes: ...
+ async def fetch(
+     url: str,
+     *,
+     timeout: float = 3.0,
+ ) -> bytes:
-     async with session.get(url) as response:
-         return await response.read()
- if __name__ == "__main__":
-     main()
""",
    "go": """
- package store
- import (
- 	"context"
- )
+ type Store interface {
+ 	Get(ctx context.Context, key string) ([]byte, error)
+ }
+ type Option func(*config)
+ var ErrMissing = errors.New("missing")
+ const (
+ 	A = iota
+ 	B
+ )
+ func New(path string, options ...Option) (*Disk, error) {
- 	disk := &Disk{path: path}
- 	for _, option := range options {
- 		option(&disk.config)
- 	}
- 	return disk, nil
. }
+ func (d *Disk) Get(ctx context.Context, key string) ([]byte, error) {
- 	return os.ReadFile(filepath.Join(d.path, key))
. }
""",
    "rust": """
- use std::io;
+ #[derive(Debug, Clone)]
+ pub struct Config {
+     pub path: PathBuf,
+     pub limit: Option<u32>,
+ }
+ pub enum Event {
+     Open,
+     Data { bytes: Vec<u8>, last: bool },
+     Closed(io::Error),
+ }
+ pub trait Sink: Send {
+     type Error;
+     fn push(&mut self, event: Event) -> Result<(), Self::Error>;
+     fn close(self) where Self: Sized {
-         drop(self)
.     }
+ }
+ impl Config {
+     pub const fn new(path: PathBuf) -> Self {
-         Self { path, limit: None }
.     }
. }
+ pub(crate) async unsafe fn run<'a, T>(input: &'a [T]) -> io::Result<usize>
+ where
+     T: AsRef<[u8]>,
. {
-     Ok(input.len())
. }
+ pub type Bytes = Vec<u8>;
+ pub const MAX: usize = 1 << 20;
- let x = run(&[]);
""",
    "java": """
- package a.b;
- import java.util.List;
+ public sealed interface Shape permits Circle, Square {}
+ public record Circle(double radius) implements Shape {}
+ public enum Color { RED, GREEN }
+ @Service
+ public class Orders {
+     private final Clock clock;
+     public Orders(Clock clock) {
-         this.clock = clock;
.     }
+     @Override
+     public <T extends Order> List<T> find(Query query, int limit) throws NotFound {
-         return repository.find(query, limit);
.     }
+     abstract void touch();
. }
""",
    "kotlin": """
+ data class User(val id: Long, val name: String)
+ sealed class State {
+     object Idle : State()
+     data class Busy(val job: Job) : State()
+ }
+ interface Api {
+     @GET("users/{id}")
+     suspend fun user(@Path("id") id: Long): User
+ }
+ fun String.slug(): String = lowercase().replace(' ', '-')
+ inline fun <reified T> parse(text: String): T {
-     return json.decodeFromString(text)
. }
- val user = User(1, "a")
""",
    "swift": """
+ public protocol Store {
+     associatedtype Key: Hashable
+     func load(_ key: Key) async throws -> Data
+ }
+ public struct Token: Codable {
+     let value: String
+     var isExpired: Bool {
-         expires < Date()
.     }
+     init(value: String) {
-         self.value = value
.     }
+ }
+ enum Failure: Error {
+     case offline
+     case server(code: Int)
+ }
+ @MainActor
+ func refresh(_ token: Token, retries: Int = 2) async throws -> Token {
-     try await api.refresh(token)
. }
""",
    "csharp": """
- using System;
+ public record Money(decimal Amount, string Currency);
+ public interface IClock
. {
+     DateTimeOffset Now { get; }
. }
+ public abstract class Handler<T> where T : Command
. {
+     protected readonly IClock clock;
+     protected Handler(IClock clock)
.     {
-         this.clock = clock;
.     }
+     public abstract Task<Result> HandleAsync(T command, CancellationToken cancel);
+     public virtual bool CanHandle(Command command) => command is T;
. }
+ public delegate void Changed(object sender, int value);
""",
    "c": """
- #include <stdio.h>
+ #define SIZE 16
+ typedef struct node {
+     struct node *next;
+     int value;
+ } node_t;
+ enum color { RED, GREEN };
+ int list_push(node_t **head, int value);
+ static const char *name_of(enum color c)
. {
-     switch (c) {
-     case RED: return "red";
-     default: return "green";
-     }
. }
""",
    "cpp": """
+ using Id = std::uint64_t;
+ namespace net {
+ template <typename T>
+ class Pool {
+ public:
+     explicit Pool(std::size_t size);
+     ~Pool();
+     [[nodiscard]] T* take() noexcept;
+     void give(T* item) {
-         free_.push_back(item);
.     }
+ private:
+     std::vector<T*> free_;
+ };
+ std::optional<Id> find(const std::string& name) const;
. }
""",
    "php": """
. <?php
- namespace App;
+ final class Cart
. {
+     public function __construct(private array $items = []) {}
+     public function add(Item $item, int $count = 1): self
.     {
-         $this->items[] = [$item, $count];
-         return $this;
.     }
. }
+ enum Suit: string { case Hearts = 'H'; }
+ function total(Cart $cart): ?Money {
-     return $cart->total();
. }
""",
    "ruby": """
- require "json"
+ class Account < Base
+   attr_reader :owner, :balance
+   LIMIT = 100
+   def initialize(owner:, balance: 0)
-     @owner = owner
-     @balance = balance
.   end
+   def self.open(owner)
-     new(owner: owner)
.   end
. end
+ module Money
+   def self.parse(text)
-     Integer(text)
.   end
. end
""",
    "scala": """
+ final case class User(id: Long, name: String)
+ sealed trait Tree[+A]
+ trait Repo[F[_]] {
+   def find(id: Long): F[Option[User]]
+ }
+ def size[A](tree: Tree[A]): Int = {
-   tree match {
-     case Leaf => 0
-   }
. }
""",
    "elixir": """
+ defmodule Cart do
+   @type item :: {String.t(), pos_integer()}
+   defstruct items: []
+   @spec add(t(), item()) :: {:ok, t()} | {:error, :full}
+   def add(cart, item) do
-     {:ok, %{cart | items: [item | cart.items]}}
.   end
. end
""",
    "haskell": """
- module Main where
- import Data.Map (Map)
+ data Shape = Circle Double | Square Double
+   deriving (Show)
+ newtype Id = Id Int
+ class Area a where
+   area :: a -> Double
+ lookupAll :: Ord k => [k] -> Map k v -> [v]
- lookupAll keys table =
-   mapMaybe (`Map.lookup` table) keys
""",
    "dart": """
+ abstract class Repo {
+   Future<List<Item>> all({int limit = 20});
+   void clear();
+ }
+ enum Level { low, high }
+ Future<void> main(List<String> args) async {
-   final repo = Repo();
-   print(await repo.all());
. }
""",
    "sql": """
+ CREATE TABLE orders (
+     id bigint PRIMARY KEY,
+     total numeric NOT NULL CHECK (total >= 0)
+ );
+ CREATE INDEX orders_total ON orders (total);
+ CREATE FUNCTION paid(order_id bigint) RETURNS boolean AS $$
- BEGIN
-     RETURN EXISTS (SELECT 1 FROM payments WHERE id = order_id);
- END;
. $$ LANGUAGE plpgsql;
- SELECT * FROM orders;
- INSERT INTO orders VALUES (1, 2);
""",
    "graphql": """
+ type Query {
+   user(id: ID!): User
+ }
+ input NewUser {
+   name: String!
+ }
+ enum Role { ADMIN USER }
""",
    "proto": """
- syntax = "proto3";
+ message Request {
+   string id = 1;
+ }
+ service Users {
+   rpc Get (Request) returns (User);
+ }
""",
    "lua": """
- local json = require("json")
+ local function clamp(value, low, high)
-   return math.max(low, math.min(high, value))
. end
+ function M.decode(text)
-   return json.decode(text)
. end
""",
    "ocaml": """
+ type shape =
+   | Circle of float
+   | Square of float
+ val area : shape -> float
+ exception Empty of string
""",
    "clojure": """
+ (defn add-item
.   [cart item]
-   (update cart :items conj item))
""",
    "r": """
+ fit_model <- function(data, formula, weights = NULL) {
-   lm(formula, data, weights = weights)
. }
""",
    "julia": """
+ struct Point
+     x::Float64
+ end
+ function norm(p::Point)::Float64
-     sqrt(p.x^2)
. end
""",
    "solidity": """
+ contract Vault {
+     event Deposited(address indexed who, uint256 amount);
+     error TooSmall(uint256 amount);
+     mapping(address => uint256) public balances;
+     function deposit() external payable {
-         balances[msg.sender] += msg.value;
.     }
. }
""",
    "zig": """
+ pub const Point = struct {
+     x: f32,
+     y: f32,
+ };
+ pub fn dot(a: Point, b: Point) f32 {
-     return a.x * b.x + a.y * b.y;
. }
""",
    "http": """
+ GET /users/{id}
+ POST /users
""",
    "pseudo code": """
+ parse(text) -> Tree
+ render(tree: Tree): string
- walk(tree)
""",
}


@pytest.mark.parametrize("language", SAMPLES)
def test_signatures_and_types_stay_and_bodies_go(language: str) -> None:
    """In every language: heads of functions and shapes of types are kept, statements and bodies are not."""
    marked = [line for line in SAMPLES[language].split("\n") if line]
    code = [line[2:] for line in marked]
    kept = find_declarations(code).lines()
    lost = [code[number] for number, line in enumerate(marked) if line[0] == "+" and number not in kept]
    superfluous = [code[number] for number, line in enumerate(marked) if line[0] == "-" and number in kept]
    assert (lost, superfluous) == ([], [])
